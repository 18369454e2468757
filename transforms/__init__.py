"""The catalogue: every rule, in the order of application."""

from __future__ import annotations

from .checkpoints.torch_load_map_location import TorchLoadMapLocation
from .checkpoints.whole_model_save_load import WholeModelSaveLoad
from .devices.tensor_to_numpy import TensorToNumpy
from .gradients.eval_missing_no_grad import EvalMissingNoGrad
from .gradients.zero_grad_missing import ZeroGradMissing
from .gradients.zero_grad_wipes_gradients import ZeroGradWipesGradients
from .inplace.data_inplace_to_no_grad import DataInplaceToNoGrad
from .inplace.data_read_to_detach import DataReadToDetach
from .inplace.leaf_inplace_update import LeafInplaceUpdate
from .inplace.nn_init_data_arg import NnInitDataArg
from .losses.bce_with_logits import BceWithLogits
from .losses.cross_entropy_on_softmax import CrossEntropyOnSoftmax
from .losses.double_sigmoid import DoubleSigmoid
from .losses.nll_needs_log_softmax import NllNeedsLogSoftmax
from .memory.gc_before_empty_cache import GcBeforeEmptyCache
from .memory.loss_graph_accumulation import LossGraphAccumulation
from .modes.eval_missing_eval_mode import EvalMissingEvalMode
from .modes.eval_mode_not_restored import EvalModeNotRestored
from .scalars.scalar_index_to_item import ScalarIndexToItem

CHAIN = (
    # Expressions first: the blocks that later rules wrap and move then hold their final text.
    ScalarIndexToItem(),
    # Checkpoints: whole files before the options of one call.
    WholeModelSaveLoad(),
    TorchLoadMapLocation(),
    # Writes in place, and reads of `.data`.
    NnInitDataArg(),
    DataInplaceToNoGrad(),
    LeafInplaceUpdate(),
    DataReadToDetach(),
    # Devices.
    TensorToNumpy(),
    # Losses, and what is kept of them.
    CrossEntropyOnSoftmax(),
    NllNeedsLogSoftmax(),
    DoubleSigmoid(),
    BceWithLogits(),
    LossGraphAccumulation(),
    GcBeforeEmptyCache(),
    # Gradients: statements that move or are added.
    ZeroGradWipesGradients(),
    ZeroGradMissing(),
    # Modes, and what holds for whole functions.
    EvalModeNotRestored(),
    EvalMissingEvalMode(),
    EvalMissingNoGrad(),
    # Data loaders: the main guard indents what all others have changed.
    # Mixed precision, timing and determinism.
)
