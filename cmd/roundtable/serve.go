package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"roundtable/api"
	"roundtable/events/eventlog"
	"roundtable/internal/attest"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/mcp"
)

// serveFlags are the settings of a server; every bound is one.
type serveFlags struct {
	Addr             string        `help:"Address to serve on." default:"127.0.0.1:7117"`
	Store            string        `help:"Where the history lies: sqlite." default:"sqlite"`
	TLSCert          string        `help:"Certificate file, for an address that is not loopback." name:"tls-cert" type:"path"`
	TLSKey           string        `help:"Key file of the certificate." name:"tls-key" type:"path"`
	Insecure         bool          `help:"Serve another than a loopback address without TLS."`
	Host             []string      `help:"Further host names that the server answers to."`
	Origin           []string      `help:"Further origins, scheme://host[:port], that may send requests from a browser."`
	AllowUnsandboxed bool          `help:"Run tests also where the machine cannot isolate them in namespaces."`
	TestSlots        int           `help:"Tests that run at once." default:"2"`
	ApplySlots       int           `help:"Workspaces in which a transaction is applied at once; in one workspace it is one at a time." default:"4"`
	MaxWaiting       int           `help:"Transactions that may wait for their turn in one workspace." default:"1000"`
	Rate             int           `help:"Requests of each principal a second; 0 is no limit." default:"200"`
	Burst            int           `help:"Requests of each principal at once beyond the rate." default:"400"`
	MaxBody          int64         `help:"Bytes of a JSON body or an MCP message." default:"10485760"`
	MaxPatch         int64         `help:"Bytes of a text/x-patch body." default:"33554432"`
	MaxStreams       int           `help:"Open event streams in all." default:"2000"`
	Heartbeat        time.Duration `help:"Longest silence of an event stream." default:"15s"`
	MCPNames         string        `help:"Tool names that are listed: plain (proposal_create) or dotted (proposal.create)." name:"mcp-names" enum:"plain,dotted" default:"plain"`
	ApplyMode        string        `help:"What becomes of a change in a Git workspace: worktree changes files and leaves the index and HEAD alone, commit also commits it." enum:"worktree,commit" default:"worktree"`
	ApplyBranch      string        `help:"Branch that commit mode commits to; default: the one that is checked out."`
	LogLevel         string        `help:"Least level that is logged: debug, info, warn or error." default:"info"`
}

type serveCmd struct {
	Data string `help:"Data folder; default: .roundtable in the current folder." type:"path"`
	serveFlags
}

// Run serves until it is told to stop.
func (c *serveCmd) Run(ctx context.Context, t terminal) error {
	data := dataFolder(c.Data)
	if _, err := os.Stat(filepath.Join(data, "log.db")); errors.Is(err, os.ErrNotExist) && c.Data == "" {
		if err := (&initCmd{Dir: ".", Name: "admin"}).Run(ctx, t); err != nil { // a repository without a data folder
			return err
		}
	} else if err != nil {
		return fmt.Errorf("there is no data folder at %s: run `roundtable init` first: %w", data, err)
	}
	return serve(ctx, data, c.serveFlags, t)
}

func dataFolder(flag string) string {
	if flag == "" {
		flag = ".roundtable"
	}
	if abs, err := filepath.Abs(flag); err == nil {
		return abs
	}
	return flag
}

// serve opens the data folder and serves it until ctx ends.
func serve(ctx context.Context, data string, f serveFlags, t terminal) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	lg, err := jsonLogger(t.err, f.LogLevel)
	if err != nil {
		return err
	}
	die, err := newFailpoint(t.env(failpointVar))
	if err != nil {
		return err
	}
	pol, err := policyOf(ctx, f.ApplyMode, f.ApplyBranch)
	if err != nil {
		return err
	}
	a, err := openWith(ctx, data, lg, pol, die)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if r, err := eventlog.VerifyTail(ctx, a.store, verifyTail); err != nil || !r.OK {
		return errors.Join(err, fmt.Errorf("the newest %d events do not verify: %s at position %d; `roundtable log verify` tells more", verifyTail, r.Detail, r.FirstBad))
	}
	if b, err := a.begun(ctx); err != nil || !b.over {
		return errors.Join(err, fault.Errorf(fault.Conflict, "init_unfinished", "nobody has a credential for %s: run `roundtable init DIR --data %s`, which goes on where it was cut short", data, data))
	}
	a.handler.MaxWaiting = f.MaxWaiting
	if err := a.signing(); err != nil {
		return err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Addr)
	if err != nil {
		return err
	}
	return a.serve(ctx, ln, f, t)
}

// verifyTail is how many of the newest events are verified at start.
const verifyTail = 10_000

// check refuses settings that would expose the server.
func (f serveFlags) check() error {
	if f.Store != "sqlite" {
		return fault.Errorf(fault.Invalid, "store_not_supported", "--store %s: this version keeps the history in SQLite only", f.Store)
	}
	host, _, err := net.SplitHostPort(f.Addr)
	if err != nil {
		return fault.Errorf(fault.Invalid, "invalid_flag", "--addr %s: write host:port", f.Addr)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	if !loopback && f.TLSCert == "" && !f.Insecure {
		return fault.Errorf(fault.Invalid, "insecure_address", "--addr %s is reachable from elsewhere: give --tls-cert and --tls-key, or say --insecure", f.Addr)
	}
	if f.MaxWaiting < 1 {
		return fault.Errorf(fault.Invalid, "invalid_flag", "--max-waiting %d: at least 1 must be able to wait", f.MaxWaiting)
	}
	if (f.TLSCert == "") != (f.TLSKey == "") {
		return fault.Errorf(fault.Invalid, "invalid_flag", "--tls-cert and --tls-key go together")
	}
	return nil
}

// serve runs everything on ln until ctx ends or a part fails.
func (a *app) serve(ctx context.Context, ln net.Listener, f serveFlags, t terminal) error {
	if err := a.settle(ctx); err != nil {
		return errors.Join(unlessStopped(ctx, err), ln.Close())
	}
	a.warnOfBranches(ctx)
	g, ctx := errgroup.WithContext(ctx)
	following := make(chan struct{})
	g.Go(func() error { return a.follow(ctx, following) })
	web, err := a.web(f)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	g.Go(func() error { return web.feed.Run(ctx) })
	g.Go(func() error { return a.watch.run(ctx, a.store) })
	select {
	case <-following:
	case <-ctx.Done():
		return errors.Join(ln.Close(), g.Wait())
	}
	g.Go(func() error {
		return unlessStopped(ctx, a.work(ctx, working{f.AllowUnsandboxed, f.TestSlots, f.ApplySlots}))
	})
	srv := api.NewServer(ctx, web.handler)
	srv.ErrorLog = slog.NewLogLogger(a.log.Handler(), slog.LevelWarn)
	scheme := "http"
	if f.TLSCert != "" {
		scheme = "https"
		pair, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
		if err != nil {
			return errors.Join(err, ln.Close())
		}
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
	}
	g.Go(func() error {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(web.mcp.Close(grace), srv.Shutdown(grace))
	})
	at := scheme + "://" + ln.Addr().String()
	fmt.Fprintln(t.out, "listening on", at)
	if t.ready != nil {
		t.ready <- at
	}
	return g.Wait()
}

// unlessStopped returns err unless it comes of being told to stop, which is no
// failure at any moment, also while a part still begins.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// A web is what is served over HTTP.
type web struct {
	handler http.Handler
	feed    *api.Feed
	mcp     *mcp.HTTP
}

func (a *app) web(f serveFlags) (w web, err error) {
	registry := prometheus.NewRegistry()
	limiter := auth.NewLimiter(f.Rate, f.Burst, time.Now)
	w.feed, err = api.NewFeed(api.FeedConfig{Log: a.store, Known: a.known, Revoked: a.watch.Next, Metrics: registry, Logger: a.log, Now: time.Now,
		MaxStreams: f.MaxStreams, Heartbeat: f.Heartbeat})
	if err != nil {
		return w, err
	}
	ops := append(a.ops(), w.feed.Ops()...)
	tools, err := mcp.New(mcp.Config{Ops: ops, Authenticate: a.handler.Authenticate, Workspaces: a.workspaces, Limiter: limiter, Logger: a.log,
		Now: time.Now, Version: version(), DottedNames: f.MCPNames == "dotted"})
	if err != nil {
		return w, err
	}
	w.mcp = mcp.Handler(tools, mcp.HTTPConfig{Origins: f.Origin, MaxBody: f.MaxBody})
	w.handler, err = api.New(api.Config{Ops: ops, Extras: append(w.feed.Extras(), a.extras()...), Mounts: map[string]http.Handler{"/mcp": w.mcp},
		Authenticate: a.handler.Authenticate, Limiter: limiter, Ready: a.ready, Metrics: registry, Logger: a.log, Now: time.Now,
		Hosts: f.Host, Origins: f.Origin, MaxBody: f.MaxBody, MaxPatch: f.MaxPatch})
	return w, err
}

// known refuses a workspace that there is not.
func (a *app) known(ctx context.Context, workspace string) error {
	_, err := a.handler.Root(ctx, workspace)
	return err
}

// ready says how the parts do.
func (a *app) ready(ctx context.Context) []api.Check {
	_, _, err := a.store.Head(ctx)
	checks := []api.Check{{Name: "log", OK: err == nil, Detail: detail(err)}}
	status, err := a.views.Status(ctx)
	if err != nil {
		return append(checks, api.Check{Name: "views", Detail: detail(err)})
	}
	for _, s := range status {
		checks = append(checks, api.Check{Name: "view " + s.Name, OK: s.Error == "", Detail: s.Error})
	}
	return checks
}

func detail(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// extras are the routes that have no JSON answer.
func (a *app) extras() []api.Extra {
	return []api.Extra{{
		Op: op.Op{Name: "test.log", Route: "GET /api/v1/workspaces/{workspace_id}/test-runs/{test_run_id}/log", Doc: "Read what a test run printed.",
			May: op.May{Any: true}, In: op.SchemaOf[struct {
				TestRun string `json:"test_run_id"`
			}]()},
		Media: "text/plain; charset=utf-8", Serve: a.testLog,
	}, {
		Op: a.handler.RawPatchOp(), Media: rawPatchMedia, Serve: a.rawPatch,
	}, {
		Op: a.handler.ReceiptOp(), Media: attest.EnvelopeMedia, Serve: a.receipt,
	}, {
		Op: a.handler.ImageOp(), Media: imageMedia, Serve: a.beforeImage,
	}}
}
