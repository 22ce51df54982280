"""The Open Inference Protocol over gRPC: the same models, queues, keys and limits as over HTTP.

Needs the extra `[grpc]`; imported only where the setting `grpc_port` asks for it.
"""
