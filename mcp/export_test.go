package mcp

import "github.com/mark3labs/mcp-go/server"

// Lib is the library's server inside s.
func Lib(s *Server) *server.MCPServer { return s.lib }
