"""What Ray has assigned to a replica of its node: not all that the process could see."""

from dataclasses import replace

from service.config.machine import Machine, this_machine


def assigned_machine() -> Machine:
    """Return the CPUs and the memory of the node that are this replica's."""
    import ray  # noqa: PLC0415  # only a replica has it

    resources = ray.get_runtime_context().get_assigned_resources()
    machine, memory = this_machine(), resources.get("memory")
    cpus = max(1, min(machine.cpus, int(resources.get("CPU", machine.cpus))))
    machine = replace(machine, cpus=cpus, cpus_from="the CPUs that Ray assigned to the replica")
    if memory is None:
        return machine
    return replace(machine, memory=int(memory), memory_from="the memory that Ray assigned to the replica")
