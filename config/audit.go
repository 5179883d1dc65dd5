package config

import (
	"fmt"
	"net/url"
	"strings"
)

// Audit is the log of who did what: one JSON line before and one after every
// call, chained by hashes and pinned by signed checkpoints. docs/audit.md has
// its format. Its settings take effect at the start.
type Audit struct {
	// Path is the file that the log is written to; rotated files go beside it.
	// "off" writes no log at all. A relative path starts at the folder of the
	// configuration file. Empty: audit/audit.jsonl in data_dir.
	Path string `yaml:"path" file:"true" length:"0 4096" example:"/var/log/aegis/audit.jsonl"`
	// Sync says when records must have reached the disk: "always" before the
	// call goes on (concurrent calls share one flush), "interval" after
	// audit.interval at the latest, or "none" (when the system likes). With the
	// last two a power cut can take the newest records; a crash of Aegis alone
	// takes none with any of them. Default always.
	Sync string `yaml:"sync" enum:"always interval none"`
	// Interval is the time between flushes with sync interval. 10ms to 1m,
	// default 1s.
	Interval Duration `yaml:"interval" range:"10ms 1m"`
	// RotateSize begins a new file when the log is larger. 64KiB to 16GiB,
	// default 64MiB.
	RotateSize ByteSize `yaml:"rotate_size" range:"64KiB 16GiB"`
	// RotateAge begins a new file when the oldest record of the log is older.
	// 1m to 720h, default 24h.
	RotateAge Duration `yaml:"rotate_age" range:"1m 720h"`
	// Keep is the number of days after which rotated files are removed, counted
	// from their newest record; the log says so. 0 to 36500, default 0 (all are
	// kept).
	Keep int `yaml:"keep" range:"0 36500"`
	// CheckpointRecords is the most records between two signed checkpoints.
	// 1 to 10000, default 1000.
	CheckpointRecords int `yaml:"checkpoint_records" range:"1 10000"`
	// CheckpointInterval is the longest time that a record waits for a signed
	// checkpoint. 1s to 1h, default 1m.
	CheckpointInterval Duration `yaml:"checkpoint_interval" range:"1s 1h"`
	// KeyFile holds the private key that signs checkpoints, in the format of
	// signed notes. It is made when it is missing. A relative path starts at the
	// folder of the configuration file. Empty: audit.key in data_dir.
	KeyFile string `yaml:"key_file" file:"true" length:"0 4096" example:"/etc/aegis/audit.key"`
	// Sinks also get every record, after the file has it. A sink that is slow
	// or gone never holds a call up: what its buffer cannot hold it misses, and
	// the log says how much. At most 8.
	Sinks []AuditSink `yaml:"sinks"`
}

// AuditSink is one further receiver of the audit log's records.
type AuditSink struct {
	// Type is "stdout" (one line per record), "syslog" (RFC 5424) or "http"
	// (POST of up to 500 lines at a time). Required.
	Type string `yaml:"type" required:"true" enum:"stdout syslog http" example:"syslog"`
	// Address is where the syslog server listens: udp://host:port,
	// tcp://host:port, tls://host:port or unix:///path. Type syslog only.
	Address string `yaml:"address" length:"0 1000" example:"tls://syslog.example.org:6514"`
	// URL is where type http posts lines to, as application/x-ndjson.
	URL *URL `yaml:"url" example:"https://collector.example.org/aegis"`
	// Token is sent to url as "Authorization: Bearer …". Empty: none.
	Token Secret `yaml:"token" length:"1 4096" header:"true" example:"${AUDIT_TOKEN}"`
	// Buffer is the number of records to hold while the sink is slow or gone.
	// 0 to 1000000, default 0, which stands for 10000.
	Buffer int `yaml:"buffer" range:"0 1000000"`
}

const maxSinks = 8

// AuditOff reports whether the file switches the audit log off.
func (c *Config) AuditOff() bool { return c.Audit.Path == "off" }

func (v *validator) audit() {
	sinks := v.c.Audit.Sinks
	v.addIf(len(sinks) > maxSinks, "audit.sinks",
		fmt.Sprintf("lists %d sinks", len(sinks)), fmt.Sprintf("list at most %d", maxSinks))
	v.addIf(v.c.AuditOff() && len(sinks) > 0, "audit.sinks",
		"get nothing while audit.path is off", "remove them, or set a path")
	for i, s := range sinks {
		v.sink(s, item("audit.sinks", i))
	}
}

func (v *validator) sink(s AuditSink, key string) {
	refuseIf := func(bad bool, below, what, do string) { v.addIf(bad, key+below, what, do) }
	syslog, http := s.Type == "syslog", s.Type == "http"
	refuseIf(!syslog && s.Address != "", ".address", "is for type syslog only", "remove it")
	refuseIf(!http && (s.URL != nil || !s.Token.IsZero()), "",
		"has a url or token, which are for type http only", "remove them")
	refuseIf(syslog && !validSyslog(s.Address), ".address", "is not the address of a syslog server",
		"write udp://host:port, tcp://host:port, tls://host:port or unix:///path")
	refuseIf(http && s.URL == nil, ".url", "is required with type http",
		"set it, for example to https://collector.example.org/aegis")
	refuseIf(http && insecure(s.URL) && !s.Token.IsZero(), ".url",
		"is plain http while there is a token, which would cross the network readable", "use https")
}

// validSyslog accepts the addresses that a syslog sink can dial.
func validSyslog(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	switch u.Scheme {
	case "unix":
		return u.Host == "" && strings.HasPrefix(u.Path, "/") && len(u.Path) > 1
	case "udp", "tcp", "tls":
		return u.Path == "" && validHost(u.Hostname()) && u.Port() != "" && validPort(u)
	}
	return false
}
