"""Facts about torch's own API, as data without branches. Source: the documentation of torch 2.13."""

from __future__ import annotations

CANONICAL_PREFIXES: tuple[tuple[str, str], ...] = (
    ("torch.nn.modules.", "torch.nn."),
    ("torch.nn.parameter.", "torch.nn."),
    ("torch.autograd.variable.", "torch.autograd."),
    ("torch.autograd.grad_mode.", "torch."),
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("torch.nn.parallel.", "torch.nn."),
    ("torch.nn.utils.clip_grad.", "torch.nn.utils."),
    ("torch.serialization.", "torch."),
)
"""Inner module to the module that documents its names."""

MODULE_BASE = "torch.nn.Module"

TENSOR_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in """
    Linear Bilinear LazyLinear Identity Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d
    LazyConv1d LazyConv2d LazyConv3d Embedding EmbeddingBag BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm
    LayerNorm GroupNorm RMSNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LocalResponseNorm PReLU
    ReLU ReLU6 LeakyReLU ELU SELU CELU GELU Sigmoid Tanh Softmax LogSoftmax Softmax2d Softmin Softplus Softsign
    Hardtanh Hardsigmoid Hardswish SiLU Mish Tanhshrink Softshrink Hardshrink LogSigmoid Threshold GLU
    Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout Flatten Unflatten
    MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d
    Upsample UpsamplingNearest2d UpsamplingBilinear2d PixelShuffle PixelUnshuffle ConstantPad1d ConstantPad2d
    ConstantPad3d ReflectionPad1d ReflectionPad2d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad2d
    CosineSimilarity PairwiseDistance ChannelShuffle Fold Unfold RNNCell GRUCell
    TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder Transformer
    """.split()
)
"""Layers whose call returns one tensor."""

LAZY_LAYERS = "torch.nn.Lazy"
"""How the names of the layers begin that learn the shapes of their parameters from the first input."""

RECURRENT_LAYERS = frozenset({"torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU", "torch.nn.MultiheadAttention", "torch.nn.LSTMCell"})
"""Layers whose call returns a tuple."""

CONTAINERS = frozenset(f"torch.nn.{name}" for name in ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"))

WRAPPERS = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.DistributedDataParallel",
        "torch.nn.data_parallel.DataParallel",
        "torch.compile",
        "torch.optim.swa_utils.AveragedModel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "apex.parallel.DistributedDataParallel",
        "copy.deepcopy",
    }
)
"""Callables that return a module which stands for their first argument; state dict keys may change."""

KEY_CHANGING_WRAPPERS = WRAPPERS - {"copy.deepcopy"}

LOSS_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in """
    L1Loss MSELoss CrossEntropyLoss NLLLoss NLLLoss2d PoissonNLLLoss GaussianNLLLoss KLDivLoss BCELoss
    BCEWithLogitsLoss MarginRankingLoss HingeEmbeddingLoss MultiLabelMarginLoss HuberLoss SmoothL1Loss SoftMarginLoss
    MultiLabelSoftMarginLoss CosineEmbeddingLoss MultiMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss CTCLoss
    """.split()
)
"""Criteria: one 0-dim tensor, unless a reduction says otherwise."""

LOSS_FUNCTIONS = frozenset(
    f"torch.nn.functional.{name}"
    for name in """
    l1_loss mse_loss cross_entropy nll_loss poisson_nll_loss gaussian_nll_loss kl_div binary_cross_entropy
    binary_cross_entropy_with_logits margin_ranking_loss hinge_embedding_loss multilabel_margin_loss huber_loss
    smooth_l1_loss soft_margin_loss multilabel_soft_margin_loss cosine_embedding_loss multi_margin_loss
    triplet_margin_loss triplet_margin_with_distance_loss ctc_loss
    """.split()
)

LOSS_OPTIONS: dict[str, int] = {"reduction": -1, "reduce": -1, "size_average": -1}
"""Keywords that decide whether a loss is reduced."""

FACTORIES = frozenset(
    f"torch.{name}"
    for name in """
    tensor as_tensor from_numpy zeros ones empty full rand randn randint randperm arange linspace logspace eye
    zeros_like ones_like empty_like full_like rand_like randn_like randint_like normal bernoulli multinomial Tensor FloatTensor DoubleTensor
    HalfTensor LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor range
    """.split()
)

TENSOR_FUNCTIONS = frozenset(
    f"torch.{name}"
    for name in """
    cat stack hstack vstack concat abs exp log log2 log10 log1p sqrt rsqrt pow sigmoid tanh relu softmax log_softmax
    matmul mm bmm mv dot einsum add sub mul div neg sign clamp where gather index_select masked_select squeeze unsqueeze transpose
    flatten reshape permute flip roll repeat_interleave tril triu cumsum cumprod argmax argmin eq ne gt ge lt le
    isnan isinf isfinite logical_and logical_or logical_not sin cos floor ceil round fmod remainder
    bitwise_not sum mean prod std var norm logsumexp addmm baddbmm outer cross cdist nonzero lerp dist cosine_similarity
    """.split()
)
"""Functions that return one tensor, whatever their options (`max`, `min`, `sort`, `topk` do not belong here)."""

REDUCTIONS = frozenset("sum mean prod norm std var max min median argmax argmin any all logsumexp".split())
"""Methods and torch functions that give a 0-dim tensor when no dimension is named."""

PAIR_METHODS = frozenset("max min sort topk median mode kthvalue cummax cummin".split())
"""Methods that give a pair (values, indices) when a dimension is named; sort, topk, mode and kthvalue always do."""

ALWAYS_PAIR = frozenset("sort topk mode kthvalue cummax cummin".split())

TENSOR_METHODS = frozenset(
    """
    abs exp log log2 log10 log1p sqrt rsqrt pow sigmoid tanh relu softmax log_softmax matmul mm bmm mv dot add sub mul
    div neg sign clamp clip where gather index_select masked_select masked_fill squeeze unsqueeze transpose t view
    view_as reshape reshape_as flatten permute flip roll repeat expand expand_as contiguous tril triu cumsum cumprod
    eq ne gt ge lt le isnan float double half long int bool byte short type type_as to cpu cuda clone detach data
    add_ sub_ mul_ div_ copy_ fill_ zero_ clamp_ normal_ uniform_ sum mean prod norm std var argmax argmin any all
    new_zeros new_ones new_empty new_full new_tensor index_add scatter scatter_add round floor ceil narrow select
    requires_grad_ detach_ unfold diag trace logsumexp nonzero sin cos bfloat16 non_blocking pin_memory squeeze_
    unsqueeze_ numpy_ resolve_conj resolve_neg new logical_not logical_and addmm addmm_ masked_fill_
    """.split()
)
"""Methods of a tensor that return one tensor."""

TENSOR_ONLY_METHODS = frozenset(
    "backward requires_grad_ masked_fill log_softmax view_as expand_as new_zeros new_ones detach_ is_contiguous".split()
)
"""Methods that nothing but a tensor has: a call proves its receiver."""

KEEPS_MODULE = frozenset(
    "to cuda cpu eval train half float double bfloat16 apply requires_grad_ share_memory type to_empty compile".split()
)
"""Methods of a module that return the module itself (all but `compile`, which returns None, in old code a wrapper)."""

KEEPS_SCALAR = frozenset("detach data cpu cuda to clone float double half exp log sqrt abs neg sigmoid tanh long int contiguous".split())
"""Methods and attributes that keep a 0-dim tensor 0-dim."""

DROPS_GRADIENT = frozenset("detach argmax argmin eq ne gt ge lt le nonzero isnan any all long int bool byte short tolist item".split())
"""Methods whose result has no gradient history."""

NO_GRAD = frozenset({"torch.no_grad", "torch.autograd.no_grad"})
NO_GRAD_CONTEXTS = NO_GRAD | {"torch.inference_mode", "torch.autograd.inference_mode"}
SET_GRAD_ENABLED = frozenset({"torch.set_grad_enabled", "torch.autograd.set_grad_enabled"})
ENABLE_GRAD = frozenset({"torch.enable_grad", "torch.autograd.enable_grad"})

OPTIMIZERS = frozenset(
    f"torch.optim.{name}"
    for name in """
    SGD Adam AdamW Adamax Adagrad Adadelta ASGD LBFGS NAdam RAdam RMSprop Rprop SparseAdam Adafactor Muon Optimizer
    """.split()
)
SCALERS = frozenset({"torch.cuda.amp.GradScaler", "torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler", "torch.cpu.amp.GradScaler"})
LOADER = "torch.utils.data.DataLoader"

PACKED_SEQUENCE_FUNCTIONS = frozenset(f"torch.nn.utils.rnn.{name}" for name in ("pack_padded_sequence", "pack_sequence", "PackedSequence"))

MODEL_BUILDERS = ("torchvision.models.", "timm.create_model", "segmentation_models_pytorch.", "pretrainedmodels.", "torch.hub.load")
"""Prefixes of callables that return a module."""

TENSOR_OUTPUT_BUILDERS = tuple(
    f"torchvision.models.{name}"
    for name in "resnet resnext wide_resnet vgg alexnet densenet mobilenet squeezenet shufflenet mnasnet efficientnet convnext".split()
)

FRAMEWORK_BASES = frozenset(
    """
    LightningModule LightningDataModule Callback Trainer Seq2SeqTrainer TrainerCallback Learner FairseqTask
    FairseqCriterion HookBase ComposerModel NeuralNet NeuralNetClassifier NeuralNetRegressor SFTTrainer
    """.split()
)
"""Base classes (last name component) of frameworks that manage mode, gradients and devices themselves."""

FRAMEWORK_HOOKS = frozenset(
    """
    training_step validation_step test_step predict_step evaluation_step prediction_step compute_loss valid_step
    """.split()
)

INIT_FUNCTIONS = frozenset(
    f"torch.nn.init.{name}"
    for name in """
    uniform_ normal_ trunc_normal_ constant_ ones_ zeros_ eye_ dirac_ xavier_uniform_ xavier_normal_ kaiming_uniform_
    kaiming_normal_ orthogonal_ sparse_
    """.split()
)
