"""The catalogue: every rule, in the order of application."""

from __future__ import annotations

from .amp.amp_unscale_before_clip import AmpUnscaleBeforeClip
from .amp.cudnn_determinism import CudnnDeterminism
from .amp.gpu_timing_sync import GpuTimingSync
from .checkpoints.best_state_alias import BestStateAlias
from .checkpoints.checkpoint_unsafe_payload import CheckpointUnsafePayload
from .checkpoints.dataparallel_prefix import DataparallelPrefix
from .checkpoints.load_state_dict_from_path import LoadStateDictFromPath
from .checkpoints.load_state_dict_result import LoadStateDictResult
from .checkpoints.state_dict_not_called import StateDictNotCalled
from .checkpoints.torch_load_map_location import TorchLoadMapLocation
from .checkpoints.torch_load_weights_only import TorchLoadWeightsOnly
from .checkpoints.whole_model_save_load import WholeModelSaveLoad
from .dataloading.dataloader_invalid_options import DataloaderInvalidOptions
from .dataloading.dataloader_iter_next import DataloaderIterNext
from .dataloading.dataloader_main_guard import DataloaderMainGuard
from .dataloading.dataloader_pin_memory import DataloaderPinMemory
from .dataloading.dataloader_train_shuffle import DataloaderTrainShuffle
from .dataloading.dataloader_worker_count import DataloaderWorkerCount
from .dataloading.dataloader_worker_seed import DataloaderWorkerSeed
from .dataloading.distributed_set_epoch import DistributedSetEpoch
from .devices.discarded_tensor_move import DiscardedTensorMove
from .devices.factory_missing_device import FactoryMissingDevice
from .devices.hardcoded_cuda_call import HardcodedCudaCall
from .devices.hardcoded_cuda_device import HardcodedCudaDevice
from .devices.leaf_lost_after_move import LeafLostAfterMove
from .devices.tensor_to_numpy import TensorToNumpy
from .gradients.accumulated_loss_not_scaled import AccumulatedLossNotScaled
from .gradients.bare_no_grad_call import BareNoGradCall
from .gradients.eval_missing_no_grad import EvalMissingNoGrad
from .gradients.gan_fake_not_detached import GanFakeNotDetached
from .gradients.generator_no_grad_leak import GeneratorNoGradLeak
from .gradients.manual_grad_reset import ManualGradReset
from .gradients.set_to_none_default import SetToNoneDefault
from .gradients.unwrap_variable import UnwrapVariable
from .gradients.volatile_to_no_grad import VolatileToNoGrad
from .gradients.zero_grad_after_step import ZeroGradAfterStep
from .gradients.zero_grad_breaks_accumulation import ZeroGradBreaksAccumulation
from .gradients.zero_grad_missing import ZeroGradMissing
from .gradients.zero_grad_none import ZeroGradNone
from .gradients.zero_grad_wipes_gradients import ZeroGradWipesGradients
from .inplace.data_assign import DataAssign
from .inplace.data_inplace_to_no_grad import DataInplaceToNoGrad
from .inplace.data_read_to_detach import DataReadToDetach
from .inplace.inplace_on_saved_output import InplaceOnSavedOutput
from .inplace.leaf_inplace_update import LeafInplaceUpdate
from .inplace.nn_init_data_arg import NnInitDataArg
from .losses.bce_with_logits import BceWithLogits
from .losses.cross_entropy_on_softmax import CrossEntropyOnSoftmax
from .losses.double_sigmoid import DoubleSigmoid
from .losses.loss_reduction_kwargs import LossReductionKwargs
from .losses.nll_needs_log_softmax import NllNeedsLogSoftmax
from .memory.gc_before_empty_cache import GcBeforeEmptyCache
from .memory.hidden_state_not_detached import HiddenStateNotDetached
from .memory.loss_graph_accumulation import LossGraphAccumulation
from .modes.batchnorm_single_sample import BatchnormSingleSample
from .modes.eval_missing_eval_mode import EvalMissingEvalMode
from .modes.eval_mode_not_restored import EvalModeNotRestored
from .modes.missing_call_parens import MissingCallParens
from .modes.train_mode_inside_eval_loop import TrainModeInsideEvalLoop
from .scalars.item_in_hot_loop import ItemInHotLoop
from .scalars.scalar_index_to_item import ScalarIndexToItem
from .scalars.topk_accuracy_legacy import TopkAccuracyLegacy

CHAIN = (
    # What the oldest code needs before anything else can be told of it.
    VolatileToNoGrad(),
    UnwrapVariable(),
    # Expressions first: the blocks that later rules wrap and move then hold their final text.
    TopkAccuracyLegacy(),
    ScalarIndexToItem(),
    ItemInHotLoop(),
    # Checkpoints: whole files before the options of one call.
    WholeModelSaveLoad(),
    LoadStateDictFromPath(),
    LoadStateDictResult(),
    StateDictNotCalled(),
    BestStateAlias(),
    DataparallelPrefix(),
    CheckpointUnsafePayload(),
    TorchLoadMapLocation(),
    TorchLoadWeightsOnly(),
    # Writes in place, and reads of `.data`.
    NnInitDataArg(),
    DataInplaceToNoGrad(),
    DataAssign(),
    DataReadToDetach(),
    LeafInplaceUpdate(),
    InplaceOnSavedOutput(),
    # Devices.
    DiscardedTensorMove(),
    LeafLostAfterMove(),
    HardcodedCudaDevice(),
    HardcodedCudaCall(),
    FactoryMissingDevice(),
    TensorToNumpy(),
    # Losses, and what is kept of them.
    LossReductionKwargs(),
    CrossEntropyOnSoftmax(),
    NllNeedsLogSoftmax(),
    BceWithLogits(),
    DoubleSigmoid(),
    LossGraphAccumulation(),
    HiddenStateNotDetached(),
    GcBeforeEmptyCache(),
    # Gradients: statements that move or are added.
    ManualGradReset(),
    ZeroGradNone(),
    SetToNoneDefault(),
    ZeroGradBreaksAccumulation(),
    AccumulatedLossNotScaled(),
    GanFakeNotDetached(),
    ZeroGradAfterStep(),
    ZeroGradWipesGradients(),
    ZeroGradMissing(),
    # Modes, and what holds for whole functions.
    MissingCallParens(),
    BatchnormSingleSample(),
    TrainModeInsideEvalLoop(),
    GeneratorNoGradLeak(),
    BareNoGradCall(),
    EvalModeNotRestored(),
    EvalMissingEvalMode(),
    EvalMissingNoGrad(),
    # Mixed precision, timing and determinism.
    AmpUnscaleBeforeClip(),
    GpuTimingSync(),
    CudnnDeterminism(),
    # Data loaders: the main guard indents what all others have changed.
    DataloaderIterNext(),
    DataloaderInvalidOptions(),
    DataloaderWorkerSeed(),
    DataloaderTrainShuffle(),
    DataloaderPinMemory(),
    DataloaderWorkerCount(),
    DistributedSetEpoch(),
    DataloaderMainGuard(),
)
