{{- define "fet-hub.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "fet-hub.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fet-hub.labels" -}}
{{ include "fet-hub.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Configuration of the server: that of the roster, and an address for the health check inside the pod alone. */}}
{{- define "fet-hub.files" -}}
server.conf: |
  http: "127.0.0.1:8222"
  include ./nats.conf
nats.conf: {{ .Values.config | toYaml | nindent 2 }}
{{- with .Values.files }}
{{ toYaml . }}
{{- end }}
{{- end -}}
