/* Names of torch's own classes. */
#include <string.h>

#include "analyze/rules.h"

bool sw__of_torch(const char *type)
{
    static const char *const names[] = {"AdaptiveAvgPool",
                                        "AdaptiveMaxPool",
                                        "AlphaDropout",
                                        "AvgPool",
                                        "BatchNorm",
                                        "Bilinear",
                                        "CELU",
                                        "Conv",
                                        "ConvTranspose",
                                        "Dropout",
                                        "ELU",
                                        "Embedding",
                                        "EmbeddingBag",
                                        "Flatten",
                                        "Fold",
                                        "GELU",
                                        "GLU",
                                        "GRU",
                                        "GRUCell",
                                        "GroupNorm",
                                        "Hardsigmoid",
                                        "Hardswish",
                                        "Hardtanh",
                                        "Identity",
                                        "InstanceNorm",
                                        "LSTM",
                                        "LSTMCell",
                                        "LayerNorm",
                                        "LeakyReLU",
                                        "Linear",
                                        "LocalResponseNorm",
                                        "LogSoftmax",
                                        "MaxPool",
                                        "Mish",
                                        "MultiheadAttention",
                                        "PReLU",
                                        "PixelShuffle",
                                        "RMSNorm",
                                        "RNN",
                                        "RNNCell",
                                        "ReLU",
                                        "ReLU6",
                                        "ReflectionPad",
                                        "ReplicationPad",
                                        "SELU",
                                        "SiLU",
                                        "Sigmoid",
                                        "Softmax",
                                        "Softplus",
                                        "SyncBatchNorm",
                                        "Tanh",
                                        "Transformer",
                                        "TransformerDecoderLayer",
                                        "TransformerEncoderLayer",
                                        "Unflatten",
                                        "Unfold",
                                        "Upsample",
                                        "ZeroPad"};
    size_t length = strlen(type);
    if (length > 2 && type[length - 1] == 'd' && type[length - 2] >= '1' &&
        type[length - 2] <= '3') {
        length -= 2;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == length && strncmp(names[i], type, length) == 0) {
            return true;
        }
    }
    return false;
}
