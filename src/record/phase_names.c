/* Names of sections that training code usually has, and the phases they belong to.
 *
 * The whole name has to match: "forward" is a phase, "forward_hook_setup" may be anything. */
#include <string.h>

#include <stepwatch/record.h>

#include "base/compiler.h"

/* Longest alias; a longer name cannot match. */
#define ALIAS_MOST 32

struct alias {
    char name[ALIAS_MOST];
    unsigned char phase;
};

/* Lower case, words joined by '_'. The phases' own names come from their table. */
static const struct alias aliases[] = {
#define PHASE_ALIAS(number, name, text) {text, number},
    SW_PHASE_TABLE(PHASE_ALIAS)
#undef PHASE_ALIAS

        {"data", SW_PHASE_DATA_WAIT},
    {"data_load", SW_PHASE_DATA_WAIT},
    {"data_loader", SW_PHASE_DATA_WAIT},
    {"data_loading", SW_PHASE_DATA_WAIT},
    {"data_fetch", SW_PHASE_DATA_WAIT},
    {"data_time", SW_PHASE_DATA_WAIT},
    {"dataloader", SW_PHASE_DATA_WAIT},
    {"dataloading", SW_PHASE_DATA_WAIT},
    {"dataload", SW_PHASE_DATA_WAIT},
    {"load_data", SW_PHASE_DATA_WAIT},
    {"load_batch", SW_PHASE_DATA_WAIT},
    {"batch_load", SW_PHASE_DATA_WAIT},
    {"batch_loading", SW_PHASE_DATA_WAIT},
    {"get_batch", SW_PHASE_DATA_WAIT},
    {"get_data", SW_PHASE_DATA_WAIT},
    {"next_batch", SW_PHASE_DATA_WAIT},
    {"get_next_batch", SW_PHASE_DATA_WAIT},
    {"fetch_batch", SW_PHASE_DATA_WAIT},
    {"fetch_data", SW_PHASE_DATA_WAIT},
    {"wait_for_data", SW_PHASE_DATA_WAIT},

    {"host_to_device", SW_PHASE_H2D},
    {"to_device", SW_PHASE_H2D},
    {"to_gpu", SW_PHASE_H2D},
    {"to_cuda", SW_PHASE_H2D},
    {"transfer", SW_PHASE_H2D},
    {"data_transfer", SW_PHASE_H2D},
    {"device_transfer", SW_PHASE_H2D},
    {"transfer_to_device", SW_PHASE_H2D},
    {"data_to_device", SW_PHASE_H2D},
    {"batch_to_device", SW_PHASE_H2D},
    {"move_to_device", SW_PHASE_H2D},
    {"copy_to_device", SW_PHASE_H2D},
    {"memcpy_h2d", SW_PHASE_H2D},

    {"preprocessing", SW_PHASE_PREPROCESS},
    {"pre_process", SW_PHASE_PREPROCESS},
    {"preprocess_batch", SW_PHASE_PREPROCESS},
    {"data_preprocessing", SW_PHASE_PREPROCESS},
    {"transform", SW_PHASE_PREPROCESS},
    {"transforms", SW_PHASE_PREPROCESS},
    {"tokenize", SW_PHASE_PREPROCESS},
    {"tokenization", SW_PHASE_PREPROCESS},

    {"augmentation", SW_PHASE_AUGMENT},
    {"augmentations", SW_PHASE_AUGMENT},
    {"augment_batch", SW_PHASE_AUGMENT},
    {"data_augmentation", SW_PHASE_AUGMENT},

    {"collate_fn", SW_PHASE_COLLATE},
    {"collation", SW_PHASE_COLLATE},
    {"collate_batch", SW_PHASE_COLLATE},

    {"forward_pass", SW_PHASE_FORWARD},
    {"fwd", SW_PHASE_FORWARD},
    {"fwd_pass", SW_PHASE_FORWARD},
    {"model_forward", SW_PHASE_FORWARD},
    {"forward_step", SW_PHASE_FORWARD},

    {"compute_loss", SW_PHASE_LOSS},
    {"loss_computation", SW_PHASE_LOSS},
    {"calculate_loss", SW_PHASE_LOSS},
    {"loss_fn", SW_PHASE_LOSS},
    {"criterion", SW_PHASE_LOSS},

    {"backward_pass", SW_PHASE_BACKWARD},
    {"bwd", SW_PHASE_BACKWARD},
    {"bwd_pass", SW_PHASE_BACKWARD},
    {"backward_step", SW_PHASE_BACKWARD},
    {"loss_backward", SW_PHASE_BACKWARD},
    {"backprop", SW_PHASE_BACKWARD},
    {"backpropagation", SW_PHASE_BACKWARD},
    {"grad", SW_PHASE_BACKWARD},
    {"gradients", SW_PHASE_BACKWARD},
    {"compute_gradients", SW_PHASE_BACKWARD},
    {"compute_grads", SW_PHASE_BACKWARD},

    /* Clipping and scaling gradients is part of the update. */
    {"optimizer_step", SW_PHASE_OPTIMIZER},
    {"optimiser", SW_PHASE_OPTIMIZER},
    {"optimiser_step", SW_PHASE_OPTIMIZER},
    {"optim", SW_PHASE_OPTIMIZER},
    {"optim_step", SW_PHASE_OPTIMIZER},
    {"opt_step", SW_PHASE_OPTIMIZER},
    {"optimization", SW_PHASE_OPTIMIZER},
    {"update", SW_PHASE_OPTIMIZER},
    {"update_weights", SW_PHASE_OPTIMIZER},
    {"weight_update", SW_PHASE_OPTIMIZER},
    {"update_parameters", SW_PHASE_OPTIMIZER},
    {"update_params", SW_PHASE_OPTIMIZER},
    {"parameter_update", SW_PHASE_OPTIMIZER},
    {"apply_gradients", SW_PHASE_OPTIMIZER},
    {"apply_grads", SW_PHASE_OPTIMIZER},
    {"clip_grad", SW_PHASE_OPTIMIZER},
    {"clip_grads", SW_PHASE_OPTIMIZER},
    {"clip_grad_norm", SW_PHASE_OPTIMIZER},
    {"clip_grad_norm_", SW_PHASE_OPTIMIZER},
    {"clip_gradients", SW_PHASE_OPTIMIZER},
    {"grad_clip", SW_PHASE_OPTIMIZER},
    {"grad_clipping", SW_PHASE_OPTIMIZER},
    {"gradient_clipping", SW_PHASE_OPTIMIZER},
    {"scaler_step", SW_PHASE_OPTIMIZER},
    {"scaler_update", SW_PHASE_OPTIMIZER},
    {"unscale", SW_PHASE_OPTIMIZER},
    {"unscale_grads", SW_PHASE_OPTIMIZER},
    {"lr_scheduler", SW_PHASE_OPTIMIZER},
    {"lr_scheduler_step", SW_PHASE_OPTIMIZER},
    {"scheduler_step", SW_PHASE_OPTIMIZER},

    {"zero_grads", SW_PHASE_ZERO_GRAD},
    {"zero_gradients", SW_PHASE_ZERO_GRAD},
    {"zerograd", SW_PHASE_ZERO_GRAD},
    {"optimizer_zero_grad", SW_PHASE_ZERO_GRAD},

    {"comm", SW_PHASE_COMMUNICATION},
    {"all_reduce", SW_PHASE_COMMUNICATION},
    {"allreduce", SW_PHASE_COMMUNICATION},
    {"all_gather", SW_PHASE_COMMUNICATION},
    {"allgather", SW_PHASE_COMMUNICATION},
    {"reduce_scatter", SW_PHASE_COMMUNICATION},
    {"all_to_all", SW_PHASE_COMMUNICATION},
    {"broadcast", SW_PHASE_COMMUNICATION},
    {"barrier", SW_PHASE_COMMUNICATION},
    {"grad_sync", SW_PHASE_COMMUNICATION},
    {"gradient_sync", SW_PHASE_COMMUNICATION},
    {"sync_gradients", SW_PHASE_COMMUNICATION},
    {"sync_grads", SW_PHASE_COMMUNICATION},

    {"synchronize", SW_PHASE_SYNC},
    {"synchronization", SW_PHASE_SYNC},
    {"device_sync", SW_PHASE_SYNC},
    {"device_synchronize", SW_PHASE_SYNC},
    {"cuda_sync", SW_PHASE_SYNC},
    {"cuda_synchronize", SW_PHASE_SYNC},
    {"block_until_ready", SW_PHASE_SYNC},

    {"log", SW_PHASE_LOGGING},
    {"log_step", SW_PHASE_LOGGING},
    {"log_metrics", SW_PHASE_LOGGING},
    {"metrics", SW_PHASE_LOGGING},
    {"compute_metrics", SW_PHASE_LOGGING},
    {"update_metrics", SW_PHASE_LOGGING},
    {"print", SW_PHASE_LOGGING},
    {"wandb_log", SW_PHASE_LOGGING},
    {"tensorboard", SW_PHASE_LOGGING},

    {"gc_collect", SW_PHASE_GC},
    {"garbage_collection", SW_PHASE_GC},

    {"compilation", SW_PHASE_COMPILE},
    {"jit", SW_PHASE_COMPILE},
    {"jit_compile", SW_PHASE_COMPILE},
    {"torch_compile", SW_PHASE_COMPILE},
    {"recompile", SW_PHASE_COMPILE},

    {"validate", SW_PHASE_VALIDATION},
    {"val", SW_PHASE_VALIDATION},
    {"val_step", SW_PHASE_VALIDATION},
    {"val_loop", SW_PHASE_VALIDATION},
    {"val_epoch", SW_PHASE_VALIDATION},
    {"validation_step", SW_PHASE_VALIDATION},
    {"validation_loop", SW_PHASE_VALIDATION},
    {"validation_epoch", SW_PHASE_VALIDATION},
    {"evaluate", SW_PHASE_VALIDATION},
    {"evaluation", SW_PHASE_VALIDATION},
    {"eval", SW_PHASE_VALIDATION},
    {"eval_step", SW_PHASE_VALIDATION},
    {"eval_loop", SW_PHASE_VALIDATION},

    {"checkpointing", SW_PHASE_CHECKPOINT},
    {"save_checkpoint", SW_PHASE_CHECKPOINT},
    {"checkpoint_save", SW_PHASE_CHECKPOINT},
    {"save_model", SW_PHASE_CHECKPOINT},
    {"save_state", SW_PHASE_CHECKPOINT},
};

/* A section is looked up once, when it is made, so walking the table is quick enough. */
int sw_phase_of_name(const char *name, size_t length)
{
    char plain[ALIAS_MOST] = {0};
    if (!name || length == 0 || length >= sizeof plain) {
        return SW_PHASE_INHERIT;
    }
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (c == '\0') {
            return SW_PHASE_INHERIT;
        }
        /* By hand, for tolower follows the program's locale. */
        if (c >= 'A' && c <= 'Z') {
            c = (char)(c - 'A' + 'a');
        }
        if (c == '-' || c == ' ' || c == '.') {
            c = '_';
        }
        plain[i] = c;
    }
    for (size_t i = 0; i < SW__COUNTOF(aliases); i++) {
        if (memcmp(aliases[i].name, plain, sizeof plain) == 0) {
            return aliases[i].phase;
        }
    }
    return SW_PHASE_INHERIT;
}
