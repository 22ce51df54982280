{{- define "kuiper.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kuiper.fullname" -}}
{{- $name := include "kuiper.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "kuiper.selector" -}}
app.kubernetes.io/name: {{ include "kuiper.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kuiper.labels" -}}
{{ include "kuiper.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "kuiper.metadata" -}}
name: {{ include "kuiper.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "kuiper.labels" . | nindent 2 }}
{{- end }}

{{- define "kuiper.serviceAccount" -}}
{{- default (ternary (include "kuiper.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "kuiper.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ printf "%s@%s" .repository .digest }}
{{- else }}{{ printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kuiper.scheme" -}}
{{- ternary "HTTPS" "HTTP" (not (empty .Values.tls.existingSecret)) }}
{{- end }}

{{- /* what stands between the end of a pod and SIGKILL: the preStop hook, the delay, the drain and a margin */}}
{{- define "kuiper.graceSeconds" -}}
{{- add .Values.preStopSeconds (ceil .Values.drainDelaySeconds) (ceil (default 30 .Values.settings.drain_seconds)) .Values.shutdownMarginSeconds }}
{{- end }}

{{- define "kuiper.ownsCache" -}}
{{- if or .Values.cache.existingClaim .Values.models.url .Values.models.existingClaim .Values.models.image }}true{{ end }}
{{- end }}

{{- /* a probe that asks a path; where clients need certificates, the image's own check shows one */}}
{{- define "kuiper.probe" -}}
{{- if .root.Values.tls.clientCertificates -}}
exec:
  command: [python, /opt/kuiper/healthcheck.py, {{ .path }}]
{{- else -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ include "kuiper.scheme" .root }}
{{- end }}
{{- end }}

{{- /* a setting's value as text; numbers are written out, as 4294967296 */}}
{{- define "kuiper.text" -}}
{{- if kindIs "string" . }}{{ . }}{{ else if kindIs "slice" . }}{{ join "," . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{- define "kuiper.variables" -}}
{{- $set := dict "PORT" "8000" "DRAIN_DELAY_SECONDS" .Values.drainDelaySeconds }}
{{- $_ := set $set "HOST" .Values.host }}
{{- $_ := set $set "MODELS" (default "/models" .Values.models.url) }}
{{- with .Values.models.name }}{{ $_ := set $set "MODEL_NAME" . }}{{ end }}
{{- if .Values.grpc.enabled }}{{ $_ := set $set "GRPC_PORT" "8001" }}{{ end }}
{{- if include "kuiper.ownsCache" . }}{{ $_ := set $set "CACHE" "/var/cache/kuiper/code" }}{{ end }}
{{- with .Values.keys }}
{{- if .existingSecret }}
{{- with .apiKeys }}{{ $_ := set $set "API_KEYS_FILE" "/etc/kuiper/keys/api_keys" }}{{ end }}
{{- with .adminKeys }}{{ $_ := set $set "ADMIN_KEYS_FILE" "/etc/kuiper/keys/admin_keys" }}{{ end }}
{{- end }}
{{- end }}
{{- if .Values.tls.existingSecret }}
{{- $_ := set $set "SSL_CERTFILE" "/etc/kuiper/tls/tls.crt" }}
{{- $_ := set $set "SSL_KEYFILE" "/etc/kuiper/tls/tls.key" }}
{{- if .Values.tls.clientCertificates }}{{ $_ := set $set "SSL_CA_CERTS" "/etc/kuiper/tls/ca.crt" }}{{ end }}
{{- end }}
{{- range $name, $value := .Values.settings }}{{ $_ := set $set (upper $name) $value }}{{ end }}
{{- range $name, $value := $set }}
- name: KUIPER_{{ $name }}
  value: {{ include "kuiper.text" $value | quote }}
{{- end }}
{{- end }}

{{- define "kuiper.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .Values.temporarySizeLimit }}
{{- if include "kuiper.ownsCache" . }}
- name: cache
  {{- if .Values.cache.existingClaim }}
  persistentVolumeClaim:
    claimName: {{ .Values.cache.existingClaim }}
  {{- else }}
  emptyDir:
    sizeLimit: {{ .Values.cache.sizeLimit }}
  {{- end }}
{{- end }}
{{- with .Values.models.existingClaim }}
- name: models
  persistentVolumeClaim:
    claimName: {{ . }}
    readOnly: true
{{- end }}
{{- with .Values.models.image }}
- name: models
  image:
    reference: {{ . }}
    pullPolicy: {{ $.Values.image.pullPolicy }}
{{- end }}
{{- with .Values.keys }}
{{- if .existingSecret }}
- name: keys
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items:
      {{- with .apiKeys }}
      - key: {{ . }}
        path: api_keys
      {{- end }}
      {{- with .adminKeys }}
      - key: {{ . }}
        path: admin_keys
      {{- end }}
{{- end }}
{{- end }}
{{- with .Values.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{- define "kuiper.mounts" -}}
- name: tmp
  mountPath: /tmp
{{- if include "kuiper.ownsCache" . }}
- name: cache
  mountPath: /var/cache/kuiper
{{- end }}
{{- if or .Values.models.existingClaim .Values.models.image }}
- name: models
  mountPath: /models
  readOnly: true
  {{- with .Values.models.subPath }}
  subPath: {{ . }}
  {{- end }}
{{- end }}
{{- if .Values.keys.existingSecret }}
- name: keys
  mountPath: /etc/kuiper/keys
  readOnly: true
{{- end }}
{{- if .Values.tls.existingSecret }}
- name: tls
  mountPath: /etc/kuiper/tls
  readOnly: true
{{- end }}
{{- end }}

{{- /* addresses that give pods the credentials of a cloud's identity: of AWS, of EKS Pod Identity, of GKE, of Azure */}}
{{- define "kuiper.identityRule" -}}
{{- $scheme := first (splitList ":" .Values.models.url) }}
{{- if and (has $scheme (list "s3" "gs" "az")) (not .Values.models.credentialsSecret) }}
- to:
    - ipBlock:
        cidr: 169.254.169.254/32
    {{- if eq $scheme "s3" }}
    - ipBlock:
        cidr: 169.254.170.23/32
    {{- end }}
  ports:
    - port: 80
      protocol: TCP
{{- if eq $scheme "gs" }}
- to:
    - ipBlock:
        cidr: 169.254.169.252/32
  ports:
    - port: 988
      protocol: TCP
{{- end }}
{{- end }}
{{- end }}

{{- /* a duration such as 1m30s in milliseconds */}}
{{- define "kuiper.milliseconds" -}}
{{- $units := dict "h" 3600000 "m" 60000 "s" 1000 "ms" 1 }}
{{- $sum := 0 }}
{{- range regexFindAll "[0-9]+(ms|s|m|h)" . -1 }}
{{- $sum = add $sum (mul (regexFind "[0-9]+" .) (get $units (regexFind "[a-z]+" .))) }}
{{- end }}
{{- $sum }}
{{- end }}

{{- /* combinations that a schema cannot express, each with a message */}}
{{- define "kuiper.check" -}}
{{- $many := or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) }}
{{- if and $many (eq (default "none" .Values.settings.model_control) "explicit") }}
{{- fail "settings.model_control: explicit would load a model in one replica only; set replicas to 1, or use poll" }}
{{- end }}
{{- if .Values.autoscaling.enabled }}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) }}
{{- fail "autoscaling.minReplicas is larger than autoscaling.maxReplicas" }}
{{- end }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled .Values.keys.existingSecret .Values.keys.apiKeys }}
{{- if not (or .Values.settings.open_metrics .Values.serviceMonitor.keySecret.name) }}
{{- fail "serviceMonitor: the server asks for keys; set serviceMonitor.keySecret.name, or settings.open_metrics to true" }}
{{- end }}
{{- end }}
{{- with .Values.serviceMonitor }}
{{- if gt (int64 (include "kuiper.milliseconds" .scrapeTimeout)) (int64 (include "kuiper.milliseconds" .interval)) }}
{{- fail "serviceMonitor.scrapeTimeout is longer than serviceMonitor.interval, which Prometheus refuses" }}
{{- end }}
{{- end }}
{{- if and .Values.ingress.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.from) }}
{{- fail "ingress: nobody but pods of the namespace may call; name the ingress controller in networkPolicy.from" }}
{{- end }}
{{- if and .Values.ingress.enabled .Values.tls.clientCertificates }}
{{- fail "ingress: its controller has no certificate to show; set tls.clientCertificates to false" }}
{{- end }}
{{- if and (ne (.Values.settings.otel | default "off") "off") .Values.networkPolicy.enabled (not .Values.networkPolicy.egress) }}
{{- fail "settings.otel: spans would reach no collector; allow it in networkPolicy.egress, with DNS" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled .Values.tls.clientCertificates }}
{{- fail "serviceMonitor: Prometheus has no certificate to show; set tls.clientCertificates to false, or write a ServiceMonitor of your own" }}
{{- end }}
{{- $none := list "0" "0%" }}
{{- if and (has (toString .Values.updateStrategy.maxSurge) $none) (has (toString .Values.updateStrategy.maxUnavailable) $none) }}
{{- fail "updateStrategy: maxSurge and maxUnavailable may not both be 0" }}
{{- end }}
{{- end }}
