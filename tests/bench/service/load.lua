-- Makes wrk send the bytes of a file over and over, and print what it measured as one line of JSON.
-- Run: wrk -s load.lua URL -- FILE

function init(arguments)
  local file = assert(io.open(arguments[1], "rb"))
  local request = file:read("*a")
  file:close()
  wrk.format = function() return request end -- wrk calls it once: the request is the same each time
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %.6f, "p50_ms": %.3f, "p99_ms": %.3f, "errors": %d, "failures": %d}\n',
    summary.requests,
    summary.duration / 1e6,
    latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3,
    errors.status,
    errors.connect + errors.read + errors.write + errors.timeout
  ))
end
