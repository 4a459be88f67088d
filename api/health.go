package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// health says that the process answers, and nothing more.
func (s *server) health(w http.ResponseWriter, r *http.Request) {
	s.plain(w, r, http.StatusOK, map[string]any{"status": "ok"})
}

// ready says whether the service can do its work, and which part cannot.
func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	checks := s.Ready(r.Context())
	if checks == nil {
		checks = []Check{}
	}
	ok := !slices.ContainsFunc(checks, func(c Check) bool { return !c.OK })
	code := http.StatusOK
	if !ok {
		code = http.StatusServiceUnavailable
	}
	s.plain(w, r, code, map[string]any{"ready": ok, "checks": checks})
}

func (s *server) plain(w http.ResponseWriter, r *http.Request, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	s.send(w, r, b)
}

// document serves the OpenAPI document, which changes only with the program.
// It is made when it is first asked for.
func (s *server) document() http.HandlerFunc {
	var doc []byte
	made := sync.OnceValues(func() (tag string, err error) {
		doc, err = OpenAPI(s.Ops, s.Extras)
		sum := sha256.Sum256(doc)
		return `"` + hex.EncodeToString(sum[:16]) + `"`, err
	})
	return func(w http.ResponseWriter, r *http.Request) {
		tag, err := made()
		if err != nil {
			s.fail(w, r, err)
			return
		}
		h := w.Header()
		h.Set("ETag", tag)
		h.Set("Cache-Control", "no-cache")
		for have := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
			if have = strings.TrimSpace(have); have == "*" || strings.TrimPrefix(have, "W/") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		h.Set("Content-Type", "application/json")
		s.zip(w, r, http.StatusOK, doc)
	}
}

// metrics counts requests. Its labels are names of ops and kinds of faults:
// closed sets, so that no client can make them grow.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roundtable_http_requests_total", Help: "Requests answered, by operation and outcome (ok or the kind of the fault).",
		}, []string{"op", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "roundtable_http_request_seconds", Help: "Time to answer a request, by operation; streams are left out.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30},
		}, []string{"op"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) count(o op.Op, kind fault.Kind, took time.Duration) {
	outcome := string(kind)
	if outcome == "" {
		outcome = "ok"
	}
	m.requests.WithLabelValues(o.Name, outcome).Inc()
	if o.Run != nil {
		m.seconds.WithLabelValues(o.Name).Observe(took.Seconds())
	}
}

func (m *metrics) handler(reg prometheus.Gatherer) http.HandlerFunc {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP
}
