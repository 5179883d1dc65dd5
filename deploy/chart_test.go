//go:build deploy

package deploy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"aegis/config"
)

// object is a Kubernetes object.
type object map[string]any

func (o object) kind() string { return fmt.Sprint(o["kind"]) }

// render renders the chart with values, and parses what comes out.
func render(t *testing.T, set ...string) []object {
	t.Helper()
	args := []string{"template", "aegis", "helm/aegis", "--kube-version", "1.33.0"}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	out := command{}.must(t, "go", goRun(helm, args...)...)
	var list []object
	for dec := yaml.NewDecoder(strings.NewReader(out)); ; {
		var o object
		err := dec.Decode(&o)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if o != nil {
			list = append(list, o)
		}
	}
}

var everything = []string{
	"metrics.enabled=true", "metrics.serviceMonitor.enabled=true", "metrics.rules.enabled=true", "metrics.dashboard.enabled=true",
	"ingress.enabled=true", "ingress.className=nginx", "secrets.values.client_token=x", "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring",
	"networkPolicy.from[0].namespaceSelector.matchLabels.name=ingress", "imagePullSecrets[0].name=registry", "podLabels.a=b", "podAnnotations.a=b",
	"extraEnv[0].name=A", "extraEnv[0].value=b", "nodeSelector.a=b", "priorityClassName=high", "persistence.storageClass=fast", "service.annotations.a=b",
}

// shared is a store that replicas share.
var shared = []string{"config.store.kind=redis", "config.store.url=redis://redis:6379/0", "config.store.keys[0]=file:/run/secrets/aegis/store_key_of_all"}

// TestChart: Helm's own linter takes the chart, and what it renders fits Kubernetes'
// own description of its API, to the last field.
func TestChart(t *testing.T) {
	command{}.must(t, "go", goRun(helm, "lint", "--strict", "helm/aegis")...)
	api := openAPI(t)
	for name, v := range map[string]struct {
		set   []string
		kinds []string
	}{
		"default":    {nil, []string{"ConfigMap", "NetworkPolicy", "Service", "ServiceAccount", "StatefulSet"}},
		"everything": {everything, []string{"ConfigMap", "ConfigMap", "Ingress", "NetworkPolicy", "PrometheusRule", "Secret", "Service", "ServiceAccount", "ServiceMonitor", "StatefulSet"}},
		"sidecar":    {append([]string{"mode=sidecar"}, everything...), []string{"ConfigMap", "ConfigMap", "Ingress", "PersistentVolumeClaim", "PrometheusRule", "Secret", "Service", "ServiceMonitor"}},
		"replicas":   {append([]string{"replicas=3"}, shared...), []string{"ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount", "StatefulSet"}},
		"one claim":  {[]string{"persistence.existingClaim=mine"}, []string{"ConfigMap", "NetworkPolicy", "Service", "ServiceAccount", "StatefulSet"}},
		"ephemeral":  {[]string{"persistence.enabled=false", "networkPolicy.enabled=false", "serviceAccount.create=false"}, []string{"ConfigMap", "Service", "StatefulSet"}},
	} {
		t.Run(name, func(t *testing.T) {
			var kinds []string
			for _, o := range render(t, v.set...) {
				kinds = append(kinds, o.kind())
				switch o.kind() {
				case "ServiceMonitor", "PrometheusRule": // of an operator, not of Kubernetes
				default:
					api.check(t, o)
				}
				if o.kind() == "StatefulSet" {
					lockedDown(t, o)
				}
				if o.kind() == "ConfigMap" {
					loads(t, o)
				}
			}
			slices.Sort(kinds)
			if !slices.Equal(kinds, v.kinds) {
				t.Errorf("got %v, want %v", kinds, v.kinds)
			}
		})
	}
	for _, wrong := range []string{"mode=pod", "config.listen=:80", "imag.tag=x", "service.port=x", "replicas=2", "replicas=0"} {
		if out, err := (command{}).run(t, "go", goRun(helm, "template", "helm/aegis", "--kube-version", "1.33.0", "--set", wrong)...); err == nil {
			t.Errorf("%s is taken:\n%.300s", wrong, out)
		}
	}
}

// TestSidecarValues: the container for Gitea's pod fits Kubernetes' description too.
func TestSidecarValues(t *testing.T) {
	var v struct{ ExtraContainers, ExtraVolumes []any }
	var raw map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "helm/sidecar-values.yaml")), &raw); err != nil {
		t.Fatal(err)
	}
	v.ExtraContainers, _ = raw["extraContainers"].([]any)
	v.ExtraVolumes, _ = raw["extraVolumes"].([]any)
	if len(v.ExtraContainers) != 1 || len(v.ExtraVolumes) != 3 {
		t.Fatalf("got %v", raw)
	}
	openAPI(t).check(t, object{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "gitea"},
		"spec": map[string]any{"containers": v.ExtraContainers, "volumes": v.ExtraVolumes}})
}

// lockedDown holds what the "restricted" policy of Kubernetes asks for, and more.
func lockedDown(t *testing.T, o object) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"runAsNonRoot":true`, `"allowPrivilegeEscalation":false`, `"readOnlyRootFilesystem":true`, `"drop":["ALL"]`,
		`"seccompProfile":{"type":"RuntimeDefault"}`, `"automountServiceAccountToken":false`, `"livenessProbe"`, `"readinessProbe"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the StatefulSet has no %s", want)
		}
	}
}

// loads holds that Aegis takes the rendered aegis.yaml.
func loads(t *testing.T, o object) {
	t.Helper()
	data, _ := o["data"].(map[string]any)
	text, ok := data["aegis.yaml"].(string)
	if !ok {
		return // the dashboard
	}
	env := config.Env{ReadFile: func(path string, _ int64) ([]byte, fs.FileMode, error) {
		if !strings.HasPrefix(path, "/run/secrets/aegis/") {
			return nil, 0, fs.ErrNotExist
		}
		return []byte(strings.Repeat(filepath.Base(path), 8)), 0o440, nil
	}}
	if _, err := config.Parse("aegis.yaml", []byte(text), env); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// description is what Kubernetes says of its own API, in Swagger 2.0.
type description struct {
	Definitions map[string]*schema
}

type schema struct {
	Ref        string `json:"$ref"`
	Type       string
	Format     string
	Properties map[string]*schema
	Items      *schema
	Additional *schema `json:"additionalProperties"`
	Required   []string
	Kinds      []struct{ Group, Kind, Version string } `json:"x-kubernetes-group-version-kind"`
}

func openAPI(t *testing.T) *description {
	t.Helper()
	out := command{dir: t.TempDir()}.must(t, "go", "mod", "download", "-json", kubernetes)
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &module); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "artifacts", "openapi", "swagger.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d description
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// check holds that an object has the fields that its kind has, and no others.
func (d *description) check(t *testing.T, o object) {
	t.Helper()
	group, version, ok := strings.Cut(fmt.Sprint(o["apiVersion"]), "/")
	if !ok {
		group, version = "", group
	}
	for _, s := range d.Definitions {
		for _, k := range s.Kinds {
			if k.Group == group && k.Version == version && k.Kind == o.kind() {
				for _, problem := range d.fit(s, map[string]any(o), o.kind()) {
					t.Error(problem)
				}
				return
			}
		}
	}
	t.Errorf("Kubernetes has no %s %s", o["apiVersion"], o.kind())
}

// fit returns what of v does not fit s.
func (d *description) fit(s *schema, v any, at string) (problems []string) {
	if s.Ref != "" {
		return d.fit(d.Definitions[strings.TrimPrefix(s.Ref, "#/definitions/")], v, at)
	}
	wrong := func() []string { return []string{fmt.Sprintf("%s: %v (%T) is no %s", at, v, v, s.Type)} }
	switch s.Type {
	case "object", "":
		m, ok := v.(map[string]any)
		if o, isObject := v.(object); isObject {
			m, ok = o, true
		}
		if !ok {
			return wrong()
		}
		for _, r := range s.Required {
			if _, ok := m[r]; !ok {
				problems = append(problems, at+": lacks "+r)
			}
		}
		for key, x := range m {
			switch {
			case s.Properties[key] != nil:
				problems = append(problems, d.fit(s.Properties[key], x, at+"."+key)...)
			case s.Additional != nil:
				problems = append(problems, d.fit(s.Additional, x, at+"."+key)...)
			case s.Properties != nil:
				problems = append(problems, at+": has no field "+key)
			}
		}
	case "array":
		list, ok := v.([]any)
		if !ok {
			return wrong()
		}
		for i, x := range list {
			problems = append(problems, d.fit(s.Items, x, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case "string":
		_, text := v.(string)
		_, number := v.(int)
		if !text && !(number && s.Format == "int-or-string") {
			return wrong()
		}
	case "integer":
		if _, ok := v.(int); !ok {
			return wrong()
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return wrong()
		}
	}
	return problems
}

// TestDescriptionRefuses what Kubernetes would.
func TestDescriptionRefuses(t *testing.T) {
	api := openAPI(t)
	container := map[string]any{"name": "a", "image": "b", "ports": []any{map[string]any{"containerPort": "http"}}, "imagee": "c"}
	pod := object{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{container}, "volumes": []any{map[string]any{"emptyDir": map[string]any{}}}}}
	for _, s := range api.Definitions {
		if slices.ContainsFunc(s.Kinds, func(k struct{ Group, Kind, Version string }) bool { return k.Kind == "Pod" }) {
			got := api.fit(s, pod, "Pod")
			if slices.Sort(got); len(got) != 3 {
				t.Errorf("want a wrong port, a wrong field and a missing name, got %q", got)
			}
			return
		}
	}
	t.Error("there is no Pod")
}
