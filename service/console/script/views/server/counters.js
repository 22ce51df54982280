/**
 * What the server counted, as rates and percentiles between two polls.
 * @module
 */

/**
 * @typedef {{requests: number, errors: Record<string, number>, queue_length: number, in_flight: number, items: number, runs: number,
 *   batch_sizes: Record<string, number>, latency: {bounds_ms: number[], counts: number[], sum_ms: number}}} Counters of a model
 * @typedef {{uptime_s: number, memory_bytes: number|null, workers: number, busy: number, models: Record<string, Counters>}} Stats
 * @typedef {{requests: number, errors: number, queue: number, inFlight: number, items: number, runs: number, bounds: number[], counts: number[]}} Sum
 */

/**
 * The counters of one model, or of all.
 * @param {Stats} stats as `/stats` gives them
 * @param {string|null} model name of a model; null for all
 * @returns {Sum}
 */
export function sumOf(stats, model) {
  const chosen = Object.entries(stats.models).filter(([name]) => model === null || name === model).map(([, counters]) => counters);
  /** @param {(counters: Counters) => number} of @returns {number} */
  const total = (of) => chosen.reduce((sum, counters) => sum + of(counters), 0);
  const bounds = chosen[0]?.latency.bounds_ms ?? [];
  return {
    requests: total((counters) => counters.requests), errors: total((counters) => Object.values(counters.errors).reduce((a, b) => a + b, 0)),
    queue: total((counters) => counters.queue_length), inFlight: total((counters) => counters.in_flight), items: total((counters) => counters.items), runs: total((counters) => counters.runs),
    bounds, counts: Array.from({ length: bounds.length + 1 }, (_, index) => total((counters) => counters.latency.counts[index] ?? 0)),
  };
}

/**
 * A percentile of latencies, interpolated within the class that it falls into.
 * @param {number[]} bounds upper bounds of the classes, in milliseconds
 * @param {number[]} counts of each class, and of what is beyond the last bound
 * @param {number} part 0.5 for the median
 * @returns {number|null} milliseconds; null where nothing was counted
 */
export function percentile(bounds, counts, part) {
  const total = counts.reduce((a, b) => a + b, 0);
  if (!total) return null;
  let before = 0;
  for (const [index, count] of counts.entries()) {
    if (before + count >= part * total && count) {
      const low = bounds[index - 1] ?? 0;
      const high = bounds[index] ?? low;
      return low + (high - low) * ((part * total - before) / count);
    }
    before += count;
  }
  return bounds.at(-1) ?? null;
}
