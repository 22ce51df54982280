# Fills an OCI runtime configuration from an image's, as a container engine does.
$image[0] as $config
| .root = {path: $root, readonly: true}
| .process.terminal = false
| .process.user = {uid: ($config.User | tonumber), gid: ($config.User | tonumber)}
| .process.args = $config.Entrypoint + $config.Cmd
| .process.env = $config.Env + ["KUIPER_PORT=" + $port]
| .process.cwd = "/"
| .process.noNewPrivileges = true
| .process.capabilities = {bounding: [], effective: [], permitted: []}
| .process.rlimits = []
| .mounts += [{destination: "/tmp", type: "tmpfs", source: "tmpfs"}]
| .linux.namespaces |= map(select(.type != "network"))
| .linux.resources.memory = {limit: 1073741824}
