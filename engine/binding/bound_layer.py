"""Binds an operator of a graph to the layer of its type, once, at build."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from engine import pnnx
from engine.binding.argument_binding import OperandArgument, bind_operands, bind_static, place_of, weight
from engine.binding.boundary import BUILD_FAULTS, RUN_FAULTS
from engine.binding.registry import Layer
from engine.binding.requantization import first_of, requantized, requantized_spec, to_real
from engine.binding.result_choice import Evidence, ResultChoice, check_same, choose
from engine.binding.results import (
    PARTS,
    PLACEHOLDER_EXTENTS,
    Declared,
    Traits,
    declared_specs,
    kept_results,
)
from engine.dtypes import PNNX_COMPUTE, Array
from engine.errors import (
    ArgumentError,
    KuiperError,
    LayerError,
    ParameterError,
    describe_problem,
)
from engine.expression import Expression
from engine.precision import Precision
from engine.quantization.layer import Int8Layer
from engine.quantization.tensor_scale import TensorScale
from engine.spec import (
    UNKNOWN,
    QuantizedSpec,
    QuantizedTensor,
    Spec,
    TensorSpec,
    Value,
    is_known,
    spec_of,
    spell,
    tensor_specs,
)

GATHERERS = ("prim::TupleConstruct", "prim::ListConstruct")
"""Types whose layers make one value of several."""


class BoundLayer:
    """A layer with everything bound that does not change from run to run. Immutable, shared by all runs.

    Attributes:
        layer: the registered layer.
        operator: the operator as the file gives it.
        warnings: assumptions about what the file does not declare.
        gives_list: whether all of its results are one output, a list.
        int8: its int8 computation; None for float32.
        has_int4_weight: whether its weights are numbers of `engine.quantization.int4`.
        output_scales: for each output, the integers whose numbers it is rounded to, or None; empty where none is.
    """

    def __init__(
        self,
        layer: Layer,
        operator: pnnx.Operator,
        declared: Declared | None = None,
        uses: Mapping[str, str] | None = None,
    ) -> None:
        """Bind an operator to the layer of its type.

        Args:
            layer: the layer.
            operator: the operator.
            declared: the types that the file declares for operands; they determine which of the layer's results are the
                operator's outputs. None without a file: the outputs are the first results.
            uses: operand -> name of the result that it is used as; see `engine.model.result_uses`.

        Raises:
            ParameterError: a parameter or attribute is missing or of the wrong kind.
            BuildError: the outputs may be one or another of the layer's results.
        """
        self.layer = layer
        self.operator = operator
        self._place = place_of(operator)
        self._operands = bind_operands(layer, operator, declared or {})
        taken = {bound.argument.name for bound in self._operands}
        self._static = {a.name: bind_static(operator, a) for a in layer.arguments if a.name not in taken}
        if layer.collects_attributes:
            extra = operator.attrs.keys() - {argument.name for argument in layer.arguments}
            self._static |= {name: weight(operator.attrs[name]) for name in sorted(extra)}
        if "output_dtype" in self._static:
            self._static["output_dtype"] = self._declared_dtype(declared or {})
        self._static_specs: dict[str, Any] = {name: spec_of(value) for name, value in self._static.items()}
        self.attribute_bytes = sum(v.nbytes for v in self._static.values() if isinstance(v, np.ndarray))
        if layer.prepare is not None:
            self._static = self._prepare(layer.prepare)
        self._restore_dtype(declared or {})
        self.gives_list = self._is_one_list(declared or {})
        choice = self._match_results(declared, uses or {})
        self._results, self._others = choice.places, choice.others
        self.warnings = () if choice.warning is None else (choice.warning,)
        if "results" in self._static:
            self._static["results"] = self._results
        self.int8: Int8Layer | None = None
        self.has_int4_weight = False
        self.output_scales: tuple[TensorScale | None, ...] = ()
        self._takes_quantized = layer.takes_quantized or self.gathers

    def quantize(self, int8: Int8Layer | None, output_scales: Sequence[TensorScale | None]) -> None:
        """Have the layer compute in integers, or round its outputs to quantized values; called at build."""
        self.int8 = int8
        self.output_scales = tuple(output_scales) if any(output_scales) else ()

    def round_weight(self, weight: Array) -> None:
        """Have the layer multiply by rounded weights of four bits; called at build."""
        self._static = {**self._static, "weight": weight}
        self.has_int4_weight = True

    @property
    def precision(self) -> Precision:
        """What `forward` computes its products in: F32, INT8 or INT4."""
        if self.int8 is not None:
            return Precision.INT8
        return Precision.INT4 if self.has_int4_weight else Precision.F32

    def substitute(self, layer: Layer, arguments: Mapping[str, Any]) -> "BoundLayer":
        """Return the operator bound to another layer, which takes its operands in their order.

        Args:
            layer: the layer.
            arguments: all arguments that are no operands.
        """
        bound = copy(self)
        bound.layer, bound._static = layer, dict(arguments)
        bound._takes_quantized = layer.takes_quantized
        bound._static_specs = {name: spec_of(value) for name, value in arguments.items()}
        taken = [argument for argument in layer.arguments if argument.name not in arguments]
        bound._operands = tuple(OperandArgument(argument, place) for place, argument in enumerate(taken))
        return bound

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Constant arguments of `forward`: attributes, parameters and defaults, by argument."""
        return self._static

    @property
    def results(self) -> tuple[int, ...]:
        """Which of the layer's results the operator's outputs are, in their order."""
        return self._results

    @property
    def operand_places(self) -> Mapping[str, int]:
        """Argument -> place, among the operator's inputs, of the operand that it is bound to."""
        return {bound.argument.name: bound.index for bound in self._operands}

    @property
    def operand_arguments(self) -> tuple[OperandArgument, ...]:
        """The arguments that operands carry."""
        return self._operands

    @property
    def gathers(self) -> bool:
        """Whether the layer only makes a list or tuple of the operator's inputs, whatever they are."""
        expression = self._static.get("expr")
        return self.layer.type in GATHERERS or (isinstance(expression, Expression) and expression.gathers)

    def forward(self, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Run the layer on the values of the operator's inputs, in order; returns one value per output.

        Raises:
            LayerError: the values do not fit; names the operator and the operand.
        """
        outputs = self.unrounded(inputs)
        return self.rounded(outputs) if self.output_scales else outputs

    def unrounded(self, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Run the layer as `forward` does, without rounding its outputs to quantized values.

        Raises:
            LayerError: as `forward`.
        """
        source = None if self._takes_quantized else first_of(QuantizedTensor, inputs)
        if source is not None:
            outputs = self.unrounded([to_real(value) for value in inputs])
            return tuple(requantized(self.layer.type, output, source) for output in outputs)
        try:
            if self.layer.variadic:
                result = self.layer.forward(*inputs, **self._static)
            elif self.int8 is not None:
                result = self.int8.run(**self._dynamic(inputs))
            else:
                result = self.layer.forward(**self._dynamic(inputs), **self._static)
        except (KuiperError, *RUN_FAULTS) as error:
            raise self._explain(error, [spec_of(value) for value in inputs]) from error
        return self._outputs(result)

    def rounded(self, outputs: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return float32 outputs, quantized and dequantized where they have a scale."""
        pairs = zip(outputs, self.output_scales, strict=True)
        return tuple(
            scale.rounded(output)
            if scale is not None and isinstance(output, np.ndarray) and output.dtype == np.float32
            else output
            for output, scale in pairs
        )

    def infer(self, inputs: Sequence[Spec]) -> tuple[Spec, ...]:
        """Work out the specs of the outputs from those of the inputs.

        Raises:
            LayerError: the layer could not run on such inputs; names the operator and the operand.
        """
        source = None if self._takes_quantized else first_of(QuantizedSpec, inputs)
        if source is not None:
            outputs = self.infer([to_real(spec) for spec in inputs])
            return tuple(requantized_spec(output, source) for output in outputs)
        unknown: tuple[Spec, ...] = (UNKNOWN,) * len(self.operator.outputs)
        if self.layer.infer is None or not all(is_known(spec) for spec in inputs) or self._waits(inputs):
            return unknown
        try:
            result = self.layer.infer(*self._variadic(inputs), **self._spec_arguments(inputs))
        except (KuiperError, *BUILD_FAULTS) as error:
            raise self._explain(error, inputs) from error
        return unknown if result is UNKNOWN else self._outputs(result)

    def _declared_dtype(self, declared: Declared) -> np.dtype[Any] | None:
        """Return the dtype that the file declares for the first output, None where it declares none."""
        output = declared.get(self.operator.outputs[0]) if self.operator.outputs else None
        return None if output is None else PNNX_COMPUTE.get(output.dtype)

    def _declared_result(self, declared: Declared, dynamic_extent: int = PLACEHOLDER_EXTENTS[0]) -> Any:
        """Return the result of the shape rule for inputs of the declared types; None where it rejects them."""
        inputs = declared_specs(self.operator.inputs, declared, dynamic_extent)
        if inputs is None or self.layer.infer is None:
            return UNKNOWN
        try:
            return self.layer.infer(*self._variadic(inputs), **self._spec_arguments(inputs))
        except (KuiperError, *BUILD_FAULTS):
            return None

    def declared_outputs(self, declared: Declared, dynamic_extent: int) -> tuple[Spec, ...]:
        """Return what the shape rule infers of the outputs from inputs of the declared types.

        Args:
            declared: operand name -> its declared type.
            dynamic_extent: placeholder size of dynamic axes.
        """
        inputs = declared_specs(self.operator.inputs, declared, dynamic_extent)
        try:
            return self.infer(inputs if inputs is not None else [UNKNOWN])
        except KuiperError:
            return (UNKNOWN,) * len(self.operator.outputs)

    def _restore_dtype(self, declared: Declared) -> None:
        """Give the layer the `dtype` that the exporter omits for sums and means, from the output's declared type."""
        left_out = self._static.get("dtype", ...) is None and "dtype" not in self.operator.params
        dtype = self._declared_dtype(declared)
        if not left_out or dtype is None:
            return
        result = self._declared_result(declared)
        if result is None or (isinstance(result, TensorSpec) and result.dtype != dtype):
            self._static["dtype"] = self._static_specs["dtype"] = dtype

    def _match_results(self, declared: Declared | None, uses: Mapping[str, str]) -> ResultChoice:
        """Find out which of the layer's results the operator's outputs are."""
        outputs = self.operator.outputs
        first = tuple(range(len(outputs)))
        if declared is None:
            return ResultChoice(first)
        types = [declared.get(name) for name in outputs]
        result = self._declared_result(declared)
        names = self.layer.results
        if names is None:
            return ResultChoice(kept_results(result, types) if isinstance(result, tuple) else first)
        other = self._declared_result(declared, PLACEHOLDER_EXTENTS[1])
        known = (result, other) if isinstance(result, tuple) and isinstance(other, tuple) else None
        traits = self._traits(declared) if known is not None else None
        return choose(self.operator, names, Evidence(types, known, traits, uses))

    def _is_one_list(self, declared: Declared) -> bool:
        """Return whether parts of a tensor that has a type are one output that has none."""
        inputs, outputs = self.operator.inputs, self.operator.outputs
        is_apart = self.operator.type in PARTS and len(outputs) == 1
        return is_apart and declared.get(inputs[0]) is not None and declared.get(outputs[0]) is None

    def _traits(self, declared: Declared) -> Traits | None:
        """Return what is known of the layer's results for inputs of the declared types."""
        inputs = declared_specs(self.operator.inputs, declared)
        if inputs is None or self.layer.results is None or self.layer.results.traits is None:
            return None
        return self.layer.results.traits(**self._spec_arguments(inputs))

    def multiply_adds(self, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> int:
        """Count the multiply-adds of one run on inputs and outputs of these specs; 0 where unknown."""
        if self.layer.multiply_adds is None or not all(map(is_known, (*inputs, *outputs))):
            return 0
        if not self._takes_quantized:
            inputs = [to_real(spec) for spec in inputs]
        arguments = self._spec_arguments(inputs)
        return self.layer.multiply_adds(*self._variadic(inputs), outputs=tuple(outputs), **arguments)

    def _waits(self, inputs: Sequence[Spec]) -> bool:
        """Return whether a number or a list that the layer takes is in a tensor, known only during the run."""
        return any(
            True
            for operand in self._operands
            if not operand.argument.takes_any_tensor
            for _ in tensor_specs(inputs[operand.index])
        )

    def _variadic(self, inputs: Sequence[Any]) -> Sequence[Any]:
        return inputs if self.layer.variadic else ()

    def _spec_arguments(self, inputs: Sequence[Spec]) -> dict[str, Any]:
        return self._dynamic(inputs) | self._static_specs

    def _dynamic(self, inputs: Sequence[Any]) -> dict[str, Any]:
        bound = {}
        for operand in self._operands:
            value = inputs[operand.index]
            if not isinstance(value, np.ndarray | TensorSpec) or not operand.argument.takes_tensor:
                value = operand.argument.convert(value)
            bound[operand.argument.name] = value
        return bound

    def _outputs(self, result: Any) -> tuple[Any, ...]:
        """Spread a layer's result over the operator's outputs; a list stays together where there is one output."""
        count = len(self._results)
        if isinstance(result, list) or self.gives_list:
            result = tuple(result) if count > 1 else (tuple(result),)
        outputs = result if isinstance(result, tuple) else (result,)
        if len(outputs) < count:
            raise LayerError(describe_problem(self._place, f"gives {len(outputs)} outputs", f"{count}"))
        if self._others and self.layer.results is not None:
            check_same(self.operator, self.layer.results, outputs, (self._results, *self._others))
        return tuple(outputs[place] for place in self._results)

    def _prepare(self, prepare: Callable[..., dict[str, Any]]) -> dict[str, Any]:
        try:
            return prepare(**self._static)
        except ArgumentError as error:
            raise ParameterError(
                describe_problem(f"{self._place}, {error.argument!r}", error.problem, error.expected)
            ) from error
        except BUILD_FAULTS as error:
            raise ParameterError(describe_problem(self._place, f"cannot be prepared: {error}")) from error

    def _explain(self, error: Exception, inputs: Sequence[Spec]) -> LayerError:
        """Word a layer's complaint with the operator's name and, where one is at fault, the operand's."""
        if isinstance(error, ArgumentError):
            place = self._locate(error.argument, inputs)
            return LayerError(describe_problem(place, error.problem, error.expected))
        came = ", ".join(map(spell, inputs)) or "no inputs"
        return LayerError(describe_problem(self._place, f"cannot run on {came}: {error}"))

    def _locate(self, argument: str, inputs: Sequence[Spec]) -> str:
        indices = {bound.argument.name: bound.index for bound in self._operands}
        if self.layer.variadic and argument.removeprefix("inputs.").isdecimal():
            indices[argument] = int(argument.removeprefix("inputs."))
        index = indices.get(argument)
        if index is not None and index < len(inputs):
            return (
                f"{self._place}, operand {self.operator.inputs[index]!r} ({argument}, {spell(inputs[index])})"
            )
        if argument in self.operator.attrs:
            return f"{self._place}, attribute {argument!r}"
        return f"{self._place}, {argument!r}"
