{{/* The objects are those of deploy/kustomize, read from the same files; here the values are put into them. */}}

{{/* Metadata: the namespace of the release, or the given one, and the labels of Helm. */}}
{{- define "metaloop.metadata" -}}
{{- $obj := .obj -}}
{{- $metadata := $obj.metadata -}}
{{- if not (has $obj.kind (list "ClusterRole" "ClusterRoleBinding")) }}{{ $_ := set $metadata "namespace" (default .root.Release.Namespace .namespace) }}{{ end -}}
{{- $labels := dict "app.kubernetes.io/part-of" "metaloop" "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/managed-by" .root.Release.Service "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version) -}}
{{- $_ := set $metadata "labels" (merge $labels (default dict $metadata.labels)) -}}
{{- range $subject := default list $obj.subjects }}{{ $_ := set $subject "namespace" $.root.Release.Namespace }}{{ end -}}
{{- end -}}

{{/* What all pods of our image have in common. */}}
{{- define "metaloop.pod" -}}
{{- $values := .root.Values -}}
{{- $template := .obj.spec.template -}}
{{- $_ := set $template.metadata "labels" (mustMergeOverwrite (dict "app.kubernetes.io/part-of" "metaloop") $values.podLabels $template.metadata.labels) -}}
{{- with $values.podAnnotations }}{{ $_ := set $template.metadata "annotations" . }}{{ end -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" "imagePullSecrets" -}}
{{- with index $values $key }}{{ $_ := set $template.spec $key . }}{{ end -}}
{{- end -}}
{{- $container := first $template.spec.containers -}}
{{- $_ := set $container "image" (printf "%s:%s" $values.image.repository (default .root.Chart.AppVersion $values.image.tag)) -}}
{{- with $values.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end -}}
{{- end -}}

{{/* A service: replicas, resources and settings. */}}
{{- define "metaloop.service" -}}
{{- $name := .obj.metadata.name -}}
{{- $values := .root.Values -}}
{{- $own := index $values $name -}}
{{- $container := first .obj.spec.template.spec.containers -}}
{{- if kindIs "invalid" $own.replicas -}}
{{- $_ := unset .obj.spec "replicas" -}}
{{- else -}}
{{- $_ := set .obj.spec "replicas" (ternary (ternary 3 2 $values.highAvailability) (int $own.replicas) (eq (int $own.replicas) -1)) -}}
{{- end -}}
{{- with $own.resources }}{{ $_ := set $container "resources" . }}{{ end -}}
{{- $env := $container.env -}}
{{- with $values.logLevel }}{{ $env = append $env (dict "name" "METALOOP_LOG_LEVEL" "value" .) }}{{ end -}}
{{- with $values.otlpEndpoint }}{{ $env = append $env (dict "name" "METALOOP_OTLP_ENDPOINT" "value" .) }}{{ end -}}
{{- if and $values.namespaces (eq $name "watcher") }}{{ $env = append $env (dict "name" "METALOOP_NAMESPACES" "value" (join "," $values.namespaces)) }}{{ end -}}
{{- with $own.applyStrategy }}{{ $env = append $env (dict "name" "METALOOP_APPLY_STRATEGY" "value" .) }}{{ end -}}
{{- if and $values.highAvailability (ne $name "hookgateway") }}{{ $env = append $env (dict "name" "METALOOP_STREAM_REPLICAS" "value" "3") }}{{ end -}}
{{- range $key, $value := $own.env -}}
{{- $kept := list -}}
{{- range $entry := $env }}{{ if ne $entry.name $key }}{{ $kept = append $kept $entry }}{{ end }}{{ end -}}
{{- $env = append $kept (dict "name" $key "value" $value) -}}
{{- end -}}
{{- $_ := set $container "env" $env -}}
{{- if $values.highAvailability -}}
{{- range $text := splitList "\n---\n" (.root.Files.Get "components/ha/spread.yaml") -}}
{{- $spread := fromYaml $text -}}
{{- if eq $spread.metadata.name $name }}{{ $_ := set $.obj.spec.template.spec "topologySpreadConstraints" $spread.spec.template.spec.topologySpreadConstraints }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The configuration of the NATS servers, and a name for it that changes with its content. */}}
{{- define "metaloop.natsFiles" -}}
{{- $folder := ternary "components/ha" "base/nats" .Values.highAvailability -}}
{{- $tls := ternary "components/tls" "base/nats" .Values.tls.enabled -}}
{{- $files := dict "nats.conf" (.Files.Get (printf "%s/nats.conf" $folder)) "users.conf" (.Files.Get "base/nats/users.conf") -}}
{{- range $name := list "tls.conf" "cluster-tls.conf" }}{{ $_ := set $files $name ($.Files.Get (printf "%s/%s" $tls $name)) }}{{ end -}}
{{- toYaml $files -}}
{{- end -}}
{{- define "metaloop.natsConfigName" -}}
nats-{{ include "metaloop.natsFiles" . | sha256sum | trunc 10 }}
{{- end -}}

{{/* Certificates: what components/tls adds to a workload. */}}
{{- define "metaloop.tls" -}}
{{- range $text := splitList "\n---\n" (.root.Files.Get "components/tls/pods.yaml") -}}
{{- $one := fromYaml $text -}}
{{- if and (eq $one.kind $.obj.kind) (eq $one.metadata.name $.obj.metadata.name) -}}
{{- $pod := $.obj.spec.template.spec -}}
{{- $container := first $pod.containers -}}
{{- $more := first $one.spec.template.spec.containers -}}
{{- $_ := set $pod "volumes" (concat $pod.volumes $one.spec.template.spec.volumes) -}}
{{- $_ := set $container "volumeMounts" (concat $container.volumeMounts $more.volumeMounts) -}}
{{- $env := $container.env -}}
{{- range $added := default list $more.env -}}
{{- $kept := list -}}
{{- range $entry := $env }}{{ if ne $entry.name $added.name }}{{ $kept = append $kept $entry }}{{ end }}{{ end -}}
{{- $env = append $kept $added -}}
{{- end -}}
{{- $_ := set $container "env" $env -}}
{{- range $probe := list "livenessProbe" "readinessProbe" -}}
{{- with index $more $probe }}{{ $_ := set (index $container $probe) "httpGet" (merge .httpGet (index $container $probe).httpGet) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* NATS: the StatefulSet and the Service, with what high availability changes. */}}
{{- define "metaloop.nats" -}}
{{- $values := .root.Values -}}
{{- $nats := $values.nats -}}
{{- $patch := dict -}}
{{- if $values.highAvailability -}}
{{- range $text := splitList "\n---\n" (.root.Files.Get "components/ha/nats.yaml") -}}
{{- $one := fromYaml $text -}}
{{- if eq $one.kind $.obj.kind }}{{ $patch = $one }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if eq .obj.kind "Service" -}}
{{- with $patch.spec }}{{ $_ := set $.obj.spec "ports" (concat $.obj.spec.ports .ports) }}{{ end -}}
{{- else -}}
{{- $pod := .obj.spec.template.spec -}}
{{- $container := first $pod.containers -}}
{{- $_ := set .obj.spec.template.metadata.labels "app.kubernetes.io/part-of" "metaloop" -}}
{{- $volumes := list -}}
{{- range $volume := $pod.volumes -}}
{{- if eq $volume.name "config" }}{{ $_ := set $volume.configMap "name" (include "metaloop.natsConfigName" $.root) }}{{ end -}}
{{- if not (and $values.highAvailability (eq $volume.name "data")) }}{{ $volumes = append $volumes $volume }}{{ end -}}
{{- end -}}
{{- $_ := set $pod "volumes" $volumes -}}
{{- with $nats.image }}{{ $_ := set $container "image" . }}{{ end -}}
{{- with $nats.resources }}{{ $_ := set $container "resources" . }}{{ end -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" }}{{ with index $nats $key }}{{ $_ := set $pod $key . }}{{ end }}{{ end -}}
{{- range $key := list "priorityClassName" "imagePullSecrets" }}{{ with index $values $key }}{{ $_ := set $pod $key . }}{{ end }}{{ end -}}
{{- with $patch.spec -}}
{{- $_ := set $.obj.spec "replicas" 3 -}}
{{- $_ := set $pod "topologySpreadConstraints" .template.spec.topologySpreadConstraints -}}
{{- $more := first .template.spec.containers -}}
{{- $_ := set $container "env" (concat $container.env $more.env) -}}
{{- $_ := set $container "ports" (concat $container.ports $more.ports) -}}
{{- $claims := .volumeClaimTemplates -}}
{{- $_ := set (first $claims).metadata "labels" (dict "app.kubernetes.io/part-of" "metaloop") -}}
{{- $claim := (first $claims).spec -}}
{{- $_ := set $claim.resources.requests "storage" $nats.persistence.size -}}
{{- with $nats.persistence.storageClassName }}{{ $_ := set $claim "storageClassName" . }}{{ end -}}
{{- $_ := set $.obj.spec "volumeClaimTemplates" $claims -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What makes the credentials runs before everything else, at each install and upgrade. */}}
{{- define "metaloop.hook" -}}
{{- $annotations := dict "helm.sh/hook" "pre-install,pre-upgrade" "helm.sh/hook-weight" (ternary "0" "-5" (eq .obj.kind "Job")) "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" -}}
{{- $_ := set .obj.metadata "annotations" $annotations -}}
{{- if eq .obj.kind "Job" }}{{ $_ := unset .obj.spec "ttlSecondsAfterFinished" }}{{ end -}}
{{- end -}}

{{/* Rights in the whole cluster, where Metaloop serves some namespaces only. */}}
{{- define "metaloop.restricted" -}}
{{- range $text := splitList "\n---\n" (.root.Files.Get "components/namespaced/restricted.yaml") -}}
{{- $one := fromYaml $text -}}
{{- if and (eq $one.kind $.obj.kind) (eq $one.metadata.name $.obj.metadata.name) -}}
{{- with $one.rules }}{{ $_ := set $.obj "rules" . }}{{ end -}}
{{- with $one.roleRef }}{{ $_ := set $.obj "roleRef" . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The objects of one file, in the namespace of the release, or in the given one. */}}
{{- define "metaloop.file" -}}
{{- $root := .root -}}
{{- $file := .file -}}
{{- range $text := splitList "\n---\n" ($root.Files.Get $file) -}}
{{- $obj := fromYaml $text -}}
{{- $context := dict "obj" $obj "root" $root "namespace" $.namespace -}}
{{- include "metaloop.metadata" $context -}}
{{- if and $root.Values.tls.enabled (has $obj.kind (list "StatefulSet" "Deployment")) }}{{ include "metaloop.tls" $context }}{{ end -}}
{{- if eq $file "base/nats.yaml" -}}
{{- if has $obj.kind (list "StatefulSet" "Service") }}{{ include "metaloop.nats" $context }}{{ end -}}
{{- else if hasPrefix "components/credentials/" $file -}}
{{- include "metaloop.hook" $context -}}
{{- if eq $obj.kind "Job" }}{{ include "metaloop.pod" $context }}{{ end -}}
{{- else if eq $obj.kind "Deployment" -}}
{{- include "metaloop.pod" $context }}{{ include "metaloop.service" $context -}}
{{- end -}}
{{- if eq $obj.kind "ServiceAccount" -}}
{{- with $root.Values.serviceAccount.annotations }}{{ $_ := set $obj.metadata "annotations" (merge (deepCopy .) (default dict $obj.metadata.annotations)) }}{{ end -}}
{{- end -}}
{{- if $root.Values.namespaces }}{{ include "metaloop.restricted" $context }}{{ end -}}
{{- if eq $obj.kind "ClusterRole" -}}
{{- with index $root.Values.clusterRole (trimPrefix "metaloop-" $obj.metadata.name) }}{{ $_ := set $obj "rules" . }}{{ end -}}
{{- end -}}
{{- if and $root.Values.highAvailability (eq $obj.kind "NetworkPolicy") (eq $obj.metadata.name "nats") -}}
{{- $_ := set $obj.spec "ingress" (fromYaml ($root.Files.Get "components/ha/nats-network.yaml")).spec.ingress -}}
{{- $_ := set $obj.spec "egress" (fromYaml ($root.Files.Get "components/ha/nats-network.yaml")).spec.egress -}}
{{- end -}}
{{- if and (eq $obj.kind "NetworkPolicy") (has $obj.metadata.name (list "watcher" "reconciler")) -}}
{{- $open := first $obj.spec.egress -}}
{{- $ports := list -}}
{{- range $entry := $open.ports }}{{ if not (has (int $entry.port) (list 443 6443)) }}{{ $ports = append $ports $entry }}{{ end }}{{ end -}}
{{- range $port := $root.Values.networkPolicy.apiServerPorts }}{{ $ports = append $ports (dict "port" (int $port)) }}{{ end -}}
{{- $_ := set $open "ports" $ports -}}
{{- end -}}
{{- printf "---\n%s\n" (toYaml $obj) -}}
{{- end -}}
{{- end -}}
