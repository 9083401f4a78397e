/* Which devices CUDA_VISIBLE_DEVICES leaves to a program. */
#ifndef SW_WATCH_GPU_VISIBLE_H
#define SW_WATCH_GPU_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "watch/nvml.h"

/* Sets `visible` of every device. `list` is the variable's value, NULL when it is not set. CUDA numbers devices the fastest first
 * unless `by_bus`: where models differ, a number does not tell which device is meant, and `visible` is -1. */
void sw__gpu_visible(struct sw__nvml_info *devices, size_t count, const char *list,
                     bool by_bus);

#endif
