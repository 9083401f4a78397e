#define _GNU_SOURCE
#include "stress_plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern const struct stress_plugin stress_plugin;

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void *take(uint64_t *seed)
{
    /* Mostly small, some of their own pages. */
    const size_t size = draw(seed) % 64 ? draw(seed) % 2000 + 1 : draw(seed) % 300000 + 1;
    void *block = NULL;
    switch (draw(seed) % 6) {
    case 0:
        return calloc(1, size);
    case 1:
        return posix_memalign(&block, 64, size) == 0 ? block : NULL;
    case 2:
        return aligned_alloc(32, (size + 31) & ~(size_t)31);
    case 3:
        return memalign(128, size);
    default:
        return malloc(size);
    }
}

static void map(struct stress_tally *tally)
{
    char *page =
        mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) {
        page[4096] = 1;
        munmap(page, 8192);
        tally->maps++;
        tally->unmaps++;
    }
}

static void block(struct stress_tally *tally)
{
    /* The compiler must not see that it is given up again. */
    void *volatile seen = malloc(100);
    void *mine = malloc(3000);
    if (mine) {
        memset(mine, 1, 3000);
    }
    free(mine);
    tally->blocks += 2;
    tally->freed++;
    free(seen);
    tally->freed++;
}

static void read_file(const char *path, struct stress_tally *tally)
{
    char text[1024];
    int fd;
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return;
    }
    tally->opens++;
    ssize_t got;
    while ((got = read(fd, text, sizeof text)) > 0 || (got < 0 && errno == EINTR)) {
        tally->reads++;
        tally->bytes += got > 0 ? (uint64_t)got : 0;
    }
    tally->reads++;
    close(fd);
    tally->closes++;
}

static void churn(const char *path, uint64_t seed, unsigned rounds,
                  struct stress_tally *tally)
{
    enum { KEPT = 50 };
    void *kept[KEPT];
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < KEPT; i++) {
            kept[i] = take(&seed);
            tally->blocks += kept[i] != NULL;
        }
        for (unsigned i = 0; i < KEPT; i += 5) {
            void *again = kept[i] ? realloc(kept[i], draw(&seed) % 5000 + 1) : NULL;
            if (again) {
                kept[i] = again;
                tally->blocks++;
                tally->freed++;
            }
        }
        for (unsigned i = 0; i < KEPT; i++) {
            tally->freed += kept[i] != NULL;
            free(kept[i]);
        }
        map(tally);
        read_file(path, tally);
    }
}

const struct stress_plugin stress_plugin = {.churn = churn, .map = map, .block = block};
