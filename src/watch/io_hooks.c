/* All functions that stand in the place of others, as one set. */
#include "watch/io_hooks.h"

struct sw__plt_hook sw__io_hook[SW__IO_HOOK_COUNT] = {
#define SW__IO_ENTRY(function, type)                                                     \
    [SW__IO_HOOK_##                                                                      \
        function] = {.name = #function, .replacement = (void *)sw__io_##function},
    SW__IO_HOOKS(SW__IO_ENTRY)
#undef SW__IO_ENTRY
};

struct sw__plt_set sw__io_set = {.hooks = sw__io_hook, .count = SW__IO_HOOK_COUNT};
