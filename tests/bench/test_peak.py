import numpy as np
import pytest

from engine.compiler.emit.target import Target
from tests.bench.peak import MultiplyAdds
from tests.engine.compiler.harness import every_target, run


@every_target
@pytest.mark.parametrize("sums", [1, 8])
def test_kernel_does_the_operations_that_are_counted(target: Target, sums: int) -> None:
    vector = np.arange(target.lanes, dtype=np.float32)
    (result,) = run(MultiplyAdds(3, sums, target.lanes), target, vector)
    # each sum becomes x, then 1.5x, 1.75x, 1.875x
    np.testing.assert_allclose(result, vector * (1 + 1.875 * sums), rtol=1e-6)
