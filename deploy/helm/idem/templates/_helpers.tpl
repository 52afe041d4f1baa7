{{- define "idem.name" -}}
{{- if contains "idem" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-idem" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "idem.selector" -}}
app.kubernetes.io/name: idem
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "idem.labels" -}}
{{ include "idem.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "idem.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* What the chart decides, over the settings of the values: their `key` is merged, all else is apart. */ -}}
{{- define "idem.settings" -}}
{{- $own := dict
  "listen" (ternary "[::]:8080" "0.0.0.0:8080" .Values.ipv6)
  "admin" (ternary "[::]:9901" "0.0.0.0:9901" .Values.ipv6)
  "admin_probes" "everywhere"
  "admin_tokens" "/run/secrets/idem/admin-tokens"
  "key" (dict "secret_files" (list "/run/secrets/idem/naming-secret"))
  "store" (ternary "sqlite:/var/lib/idem/idem.db" .Values.store (eq .Values.kind "embedded"))
  "upstream" .Values.upstream
  "scope" .Values.scope
  "threads" (int .Values.threads)
  "log_format" "json" }}
{{- toYaml (mergeOverwrite (deepCopy .Values.settings) $own) }}
{{- end }}

{{- define "idem.password" -}}
{{- with .Values.storePassword.secret }}
- name: PGPASSWORD
  valueFrom: { secretKeyRef: { name: {{ . | quote }}, key: {{ $.Values.storePassword.key | quote }} } }
{{- end }}
{{- end }}

{{- define "idem.podSecurity" -}}
runAsNonRoot: true
runAsUser: 900
runAsGroup: 900
fsGroup: 900
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "idem.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "idem.probe" -}}
httpGet: { path: {{ . }}, port: admin, httpHeaders: [{ name: Host, value: localhost }] }
{{- end }}
