"""Which call a worker takes next, when it is given up, and what is too much: queues, fairness, batches, deadlines.

A call is a `Job` here. It waits in the `ModelQueue` of its model; the `Scheduler` has its workers take `Turn`s on the
queues, the one next whose model has had the least of the workers' time (`FairShare`).
"""
