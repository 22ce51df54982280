"""Queues, fair shares, batches and deadlines: which request a worker runs next, and which requests are refused.

A protocol makes a `Job` of a request. The `Scheduler` queues it in the `ModelQueue` of its model; a worker thread takes
it, decodes it, forms a batch (`Batcher`), runs the model and encodes the response (`worker`). The job ends on the event
loop, where observers receive it.
"""
