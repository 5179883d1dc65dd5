{{- define "aegis.fullname" -}}
{{- if contains "aegis" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-aegis" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "aegis.selector" -}}
app.kubernetes.io/name: aegis
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "aegis.labels" -}}
{{ include "aegis.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* The labels of the pods that Aegis runs in. */ -}}
{{- define "aegis.pods" -}}
{{- if eq .Values.mode "sidecar" }}{{ toYaml .Values.sidecar.podSelector }}{{ else }}{{ include "aegis.selector" . }}{{ end }}
{{- end }}

{{- define "aegis.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "aegis.fullname" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "aegis.secret" -}}
{{- .Values.secrets.existingSecret | default (include "aegis.fullname" .) }}
{{- end }}

{{- define "aegis.claim" -}}
{{- .Values.persistence.existingClaim | default (include "aegis.fullname" .) }}
{{- end }}

{{- /* aegis.yaml: what values say, with what the chart must decide. */ -}}
{{- define "aegis.config" -}}
{{- $ours := dict "listen" "0.0.0.0:8080" "data_dir" "/var/lib/aegis" }}
{{- if .Values.metrics.enabled }}
{{- $_ := set $ours "metrics" (dict "listen" (printf "0.0.0.0:%v" .Values.metrics.port) "allow_remote" true) }}
{{- end }}
{{- toYaml (mustMergeOverwrite (deepCopy .Values.config) $ours) }}
{{- end }}
