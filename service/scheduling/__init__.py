"""Queues, fair shares, batches and deadlines: which call a worker runs next, and which calls are refused.

A `Call` is submitted to the `Dispatcher`, and is a `PendingCall` until it ends. As a `ScheduledCall` it waits in the
`ModelQueue` of its model. The workers of the `Scheduler` take `WorkItem`s from the queues, next from the model that has
had the least of their time (`FairShare`). `execution` has what a worker does with a call, `delivery` brings its result
back to the event loop by a `LoopInbox`, and observers get a `CallRecord` of how it ended.
"""
