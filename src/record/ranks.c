/* Where a process stands among those that a launcher started with it: launchers say so in the environment, each
 * in its own words. */
#include <stdlib.h>
#include <string.h>

#include <stepwatch/record.h>

#include "base/compiler.h"

#define RANKS_MOST 10000000l

static const struct {
    const char *rank, *local, *size;
} launchers[] = {
    /* torchrun, accelerate, deepspeed; also by hand */
    {"RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
};

static long number_of(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    long value = text && *text ? strtol(text, &end, 10) : -1;
    return end && !*end && value >= 0 && value < RANKS_MOST ? value : -1;
}

/* Lightning starts its ranks with the local number alone. */
static bool by_local_rank(sw_rank *out)
{
    long node = number_of("NODE_RANK");
    long each = number_of("LOCAL_WORLD_SIZE");
    out->local_rank = number_of("LOCAL_RANK");
    out->world_size = number_of("WORLD_SIZE");
    if (out->local_rank < 0 || out->world_size < 1 || (node > 0 && each < 1)) {
        return false;
    }
    out->variable = "LOCAL_RANK";
    out->rank = (node > 0 ? node * each : 0) + out->local_rank;
    return out->rank < out->world_size;
}

bool sw_rank_get(sw_rank *out)
{
    for (size_t i = 0; i < SW__COUNTOF(launchers); i++) {
        *out = (sw_rank){.variable = launchers[i].rank,
                         .rank = number_of(launchers[i].rank),
                         .local_rank = number_of(launchers[i].local),
                         .world_size = number_of(launchers[i].size)};
        /* Slurm numbers every program, also a single one. */
        bool alone = launchers[i].rank[0] == 'S' && out->world_size <= 1;
        if (out->rank >= 0 && !alone &&
            (out->world_size < 0 || out->rank < out->world_size)) {
            return true;
        }
    }
    *out = (sw_rank){0};
    if (by_local_rank(out)) {
        return true;
    }
    *out = (sw_rank){.rank = -1, .local_rank = -1, .world_size = -1};
    return false;
}
