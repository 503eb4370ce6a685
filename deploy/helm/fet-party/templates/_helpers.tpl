{{- define "fet-party.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "fet-party.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fet-party.labels" -}}
{{ include "fet-party.selector" . }}
app.kubernetes.io/component: {{ .Values.role }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Metadata and spec of the pod: of the StatefulSet, or of the Job. */}}
{{- define "fet-party.pod" -}}
metadata:
  labels:
    {{- include "fet-party.labels" . | nindent 4 }}
  annotations:
    # A new file starts the program again.
    fet/files: {{ .Values.files | toJson | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  # The party ends after its present answer, the primary after its present step.
  terminationGracePeriodSeconds: 120
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if eq .Values.role "primary" }}
  restartPolicy: Never
  {{- end }}
  containers:
    - name: fet
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      workingDir: /etc/fet
      {{- include "fet-party.command" . | nindent 6 }}
      env:
        - {name: FET_DATA, value: /data}
      {{- with .Values.environmentSecret }}
      envFrom:
        - secretRef: {name: {{ . }}}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      {{- include "fet-party.probes" . | nindent 6 }}
      volumeMounts:
        - {name: files, mountPath: /etc/fet, readOnly: true}
        - {name: table, mountPath: /data, readOnly: true}
        - {name: state, mountPath: /var/lib/fet}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - name: files
      projected:
        # The program accepts a key that root provides for a group to read.
        defaultMode: 0440
        sources:
          - configMap: {name: {{ include "fet-party.name" . }}}
          - secret: {name: {{ .Values.keySecret }}}
    - name: table
      {{- toYaml .Values.table | nindent 6 }}
    - name: state
      persistentVolumeClaim:
        claimName: {{ .Values.state.existingClaim | default (printf "%s-state" (include "fet-party.name" .)) }}
    - name: tmp
      emptyDir: {sizeLimit: 1Gi}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "fet-party.command" -}}
{{- if .Values.maintenance -}}
command: ["sleep", "infinity"]
{{- else if eq .Values.role "party" -}}
args: ["party", "party.toml", "--log", "json"]
{{- else -}}
{{- with .Values.run -}}
args:
  - run
  - {{ .experiment | quote }}
  - --parties
  - {{ .roster | quote }}
  - --key
  - {{ .key | quote }}
  - --out
  - {{ printf "/var/lib/fet/%s" .result | quote }}
  - --log
  - json
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A party ends by itself if it cannot continue. Without the monitor no probe ends it: `fet status` also depends on the hub. */}}
{{- define "fet-party.probes" -}}
{{- if and (eq .Values.role "party") (not .Values.maintenance) -}}
{{- if .Values.monitor.enabled -}}
ports:
  - {name: monitor, containerPort: {{ .Values.monitor.port }}}
startupProbe:
  httpGet: {path: /healthz, port: monitor}
  periodSeconds: 10
  # The party reads its table first.
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: monitor}
  periodSeconds: 30
  timeoutSeconds: 10
readinessProbe:
  httpGet: {path: /readyz, port: monitor}
  periodSeconds: 15
  timeoutSeconds: 10
{{- else -}}
readinessProbe:
  exec:
    command: [fet, status, party.toml, --check]
  periodSeconds: 30
  timeoutSeconds: 10
{{- end -}}
{{- end -}}
{{- end -}}
