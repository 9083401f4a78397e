/* What launchers say in the environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stepwatch/record.h>

static const char *const variables[] = {"RANK",
                                        "LOCAL_RANK",
                                        "WORLD_SIZE",
                                        "NODE_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MPI_LOCALRANKID",
                                        "SLURM_PROCID",
                                        "SLURM_LOCALID",
                                        "SLURM_NTASKS"};

struct example {
    const char *set; /* NAME=VALUE NAME=VALUE */
    long rank, local, size;
};

static const struct example examples[] = {
    {"", -1, -1, -1},
    {"RANK=3 LOCAL_RANK=1 WORLD_SIZE=4", 3, 1, 4},
    {"RANK=3", 3, -1, -1},
    {"RANK=4 WORLD_SIZE=4", -1, -1, -1},
    {"RANK=-1 WORLD_SIZE=4", -1, -1, -1},
    {"RANK=1x WORLD_SIZE=4", -1, -1, -1},
    {"RANK=99999999999999999999 WORLD_SIZE=4", -1, -1, -1},
    {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_SIZE=3", 2, 0,
     3},
    {"PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0", 0, 0, 2},
    {"SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NTASKS=2", 1, 1, 2},
    {"SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=1", -1, -1, -1},
    {"RANK=1 WORLD_SIZE=2 SLURM_PROCID=0 SLURM_NTASKS=9", 1, -1, 2},
    {"LOCAL_RANK=1 WORLD_SIZE=2", 1, 1, 2},
    {"LOCAL_RANK=1 WORLD_SIZE=8 NODE_RANK=2 LOCAL_WORLD_SIZE=2", 5, 1, 8},
    {"LOCAL_RANK=1 WORLD_SIZE=8 NODE_RANK=2", -1, -1, -1},
    {"LOCAL_RANK=1", -1, -1, -1},
};

static void test_examples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        char text[256];
        for (size_t k = 0; k < sizeof variables / sizeof variables[0]; k++) {
            unsetenv(variables[k]);
        }
        strncpy(text, examples[i].set, sizeof text - 1);
        text[sizeof text - 1] = '\0';
        for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
            char *equals = strchr(word, '=');
            *equals = '\0';
            setenv(word, equals + 1, 1);
        }
        sw_rank rank;
        assert_int_equal(sw_rank_get(&rank), examples[i].rank >= 0);
        assert_int_equal(rank.rank, examples[i].rank);
        assert_int_equal(rank.local_rank, examples[i].local);
        assert_int_equal(rank.world_size, examples[i].size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
