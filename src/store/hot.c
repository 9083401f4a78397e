/* Creating, growing and ending the hot file. */
#include "store/hot.h"
#include "base/compiler.h"
#include "base/os.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SW__HOT_GROWTH (256u * 1024u)

static bool sw__hot_own_folder(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode) &&
           facts.st_uid == geteuid() && (facts.st_mode & 077) == 0;
}

/* Makes the file in `folder` (a private sub-folder of it when it is a shared one) and gives it its first
 * bytes. Returns 0 or a negative errno. */
static int sw__hot_create_in(struct sw__hot *hot, const char *folder, bool shared,
                             uint64_t first)
{
    uint8_t random[16];
    char own[900];
    uint64_t room = 0;
    const char *name = "";
    enum sw__os_fs kind = sw__os_fs_kind(folder, &room, &name);
    if (kind == SW__FS_NETWORK) {
        return -EOPNOTSUPP;
    }
    if (kind == SW__FS_UNKNOWN) {
        return -ENOENT;
    }
    /* Half of what is free is the most that we take: the program may need the rest itself. */
    if (room / 2 < first) {
        return -ENOSPC;
    }
    int length;
    if (shared) {
        length =
            snprintf(own, sizeof(own), "%s/stepwatch-%u", folder, (unsigned)geteuid());
    } else {
        length = snprintf(own, sizeof(own), "%s", folder);
    }
    if (length < 0 || (size_t)length >= sizeof(own)) {
        return -ENAMETOOLONG;
    }
    if (shared && mkdir(own, 0700) != 0 && errno != EEXIST) {
        return -errno;
    }
    if (shared && !sw__hot_own_folder(own)) {
        return -EPERM;
    }
    sw__os_random(random);
    uint64_t tag;
    memcpy(&tag, random, sizeof(tag));
    snprintf(hot->path, sizeof(hot->path), "%s/%s%ld-%016llx.hot", own, shared ? "" : ".",
             (long)getpid(), (unsigned long long)tag);
    int fd = sw__os_create_private(hot->path);
    if (fd < 0) {
        hot->path[0] = 0;
        return fd;
    }
    int result = sw__os_allocate(fd, 0, first, false);
    struct stat facts;
    if (!result && fstat(fd, &facts)) {
        result = -errno;
    }
    if (result) {
        unlink(hot->path);
        close(fd);
        hot->path[0] = 0;
        return result;
    }
    /* Held until the process dies, whatever its pid is called elsewhere: readers ask for it. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &lock)) {
        (void)fcntl(fd, F_SETLK, &lock);
    }
    hot->fd = fd;
    hot->in_memory = kind == SW__FS_MEMORY;
    hot->device = facts.st_dev;
    hot->inode = facts.st_ino;
    if (hot->limit > room / 2) {
        hot->limit = room / 2 / SW__FMT_PAGE * SW__FMT_PAGE;
    }
    uint64_t file_limit = sw__os_file_size_limit();
    if (hot->limit > file_limit) {
        hot->limit = file_limit / SW__FMT_PAGE * SW__FMT_PAGE;
    }
    snprintf(hot->where, sizeof(hot->where), "%s %s", name, folder);
    return 0;
}

static bool sw__hot_map(struct sw__hot *hot, uint64_t first)
{
    /* The program needs address space too: a quarter of what is left is the most that we take. */
    uint64_t fair = sw__os_address_space_left() / 4;
    if (fair < first) {
        return false;
    }
    hot->limit = hot->limit < fair ? hot->limit : fair / SW__FMT_PAGE * SW__FMT_PAGE;
    for (uint64_t size = hot->limit; size >= first; size /= 2) {
        size = size / SW__FMT_PAGE * SW__FMT_PAGE;
        void *base =
            mmap(NULL, size, PROT_READ | PROT_WRITE,
                 hot->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 hot->fd, 0);
        if (base != MAP_FAILED) {
            hot->base = base;
            hot->reserved = size;
            hot->limit = size;
            /* A child writes into a file of its own and must not be able to write into ours. */
            (void)madvise(base, size, MADV_DONTFORK);
            (void)madvise(base, size, MADV_DONTDUMP);
            return true;
        }
        if (size == first) {
            break;
        }
        if (size / 2 < first) {
            size = first * 2;
        }
    }
    return false;
}

/* It is mapped. */
static void sw__hot_begin(struct sw__hot *hot, uint64_t first)
{
    /* Names and statistics are always kept: events leave room for them. */
    hot->reserve = hot->limit / 4;
    atomic_store(&hot->committed, first);
    atomic_store(&hot->next, SW__FMT_PAGE);
    if (hot->fd >= 0) {
        (void)sw__sigbus_watch(hot->base, hot->reserved, NULL);
    }
    (void)sw__os_populate(hot->base, first);
}

int sw__hot_create(struct sw__hot *hot, const struct sw__hot_place *place, uint64_t limit,
                   uint64_t first, sw_error_info *info)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const struct {
        const char *folder;
        bool shared;
    } places[] = {{place->asked, true},
                  {"/dev/shm", true},
                  {runtime && runtime[0] == '/' ? runtime : NULL, true},
                  {place->run_dir, false},
                  {"/tmp", true},
                  {"/var/tmp", true}};
    memset(hot, 0, sizeof(*hot));
    pthread_mutex_init(&hot->lock, NULL);
    first = (first + SW__FMT_PAGE - 1) / SW__FMT_PAGE * SW__FMT_PAGE;
    for (size_t i = 0; i < SW__COUNTOF(places) && !hot->base; i++) {
        const char *folder = places[i].folder;
        hot->limit = limit < first ? first : limit;
        hot->fd = -1;
        if (!folder || !folder[0]) {
            continue;
        }
        if (sw__hot_create_in(hot, folder, places[i].shared, first)) {
            continue;
        }
        if (!sw__hot_map(hot, first)) {
            unlink(hot->path);
            close(hot->fd);
            hot->fd = -1;
            hot->path[0] = 0;
            break; /* Address space is short: no other place will have more. */
        }
    }
    if (!hot->base) {
        hot->limit = limit < first ? first : limit;
        hot->path[0] = 0;
        hot->fd = -1;
        if (!sw__hot_map(hot, first)) {
            return sw_error_set(
                info, SW_ENOMEM,
                "there is no address space for %llu KiB of recording memory",
                (unsigned long long)(first / 1024));
        }
        snprintf(hot->where, sizeof(hot->where), "memory of the process");
    }
    sw__hot_begin(hot, first);
    return 0;
}

int sw__hot_create_nameless(struct sw__hot *hot, uint64_t limit, uint64_t first,
                            sw_error_info *info)
{
    struct stat facts;
    memset(hot, 0, sizeof(*hot));
    pthread_mutex_init(&hot->lock, NULL);
    first = (first + SW__FMT_PAGE - 1) / SW__FMT_PAGE * SW__FMT_PAGE;
    hot->limit = limit < first ? first : limit;
    hot->fd = sw__os_memory_file();
    if (hot->fd < 0 || sw__os_allocate(hot->fd, 0, first, false) ||
        fstat(hot->fd, &facts) || !sw__hot_map(hot, first)) {
        if (hot->fd >= 0) {
            close(hot->fd);
        }
        hot->fd = -1;
        return sw_error_set(info, SW_ENOMEM,
                            "there is no room for %llu KiB of recording memory",
                            (unsigned long long)(first / 1024));
    }
    snprintf(hot->path, sizeof(hot->path), "/proc/self/fd/%d", hot->fd);
    snprintf(hot->where, sizeof(hot->where), "memory without a name");
    hot->device = facts.st_dev;
    hot->inode = facts.st_ino;
    hot->in_memory = true;
    hot->nameless = true;
    sw__hot_begin(hot, first);
    return 0;
}

bool sw__hot_has_room(const struct sw__hot *hot, uint64_t size)
{
    return atomic_load_explicit(&hot->next, memory_order_relaxed) + size + hot->reserve <=
           hot->limit;
}

/* Whether a file is shorter than it should be, or was and has been made longer since: then there is a hole, which
 * reads as zeroes, and no fault would ever tell. */
static bool sw__hot_has_hole(const struct sw__hot *hot, const struct stat *facts,
                             uint64_t size)
{
    return (uint64_t)facts->st_size < size ||
           (hot->in_memory && (uint64_t)facts->st_blocks * 512 < size);
}

void sw__hot_check(struct sw__hot *hot)
{
    struct stat facts;
    if (hot->fd < 0) {
        return;
    }
    if (fstat(hot->fd, &facts) || facts.st_dev != hot->device ||
        facts.st_ino != hot->inode) {
        /* The program closed it; the number may be that of a file of its own by now. */
        hot->fd = -1;
        hot->lost = true;
    } else if (sw__hot_has_hole(
                   hot, &facts,
                   atomic_load_explicit(&hot->committed, memory_order_relaxed))) {
        hot->cut = true;
    }
}

/* Makes room for `size` more bytes. Called with the lock held. */
static bool sw__hot_grow(struct sw__hot *hot, uint64_t need)
{
    uint64_t committed = atomic_load_explicit(&hot->committed, memory_order_relaxed);
    if (need <= committed) {
        return true;
    }
    if (need > hot->limit) {
        return false;
    }
    uint64_t target = committed + SW__HOT_GROWTH;
    target = target < need ? need : target;
    target = target > hot->limit ? hot->limit : target;
    sw__hot_check(hot);
    if (hot->lost) {
        hot->limit = committed;
        return false;
    }
    if (hot->fd >= 0) {
        int result =
            sw__os_allocate_file(hot->fd, hot->device, hot->inode, committed, target);
        if (result && target > need) {
            target = need;
            result =
                sw__os_allocate_file(hot->fd, hot->device, hot->inode, committed, target);
        }
        if (result) {
            /* No more from now on, rather than asking a full file system again and again. */
            hot->limit = committed;
            return false;
        }
    }
    atomic_store_explicit(&hot->committed, target, memory_order_relaxed);
    /* Once more: it may have been cut just before it was made longer. */
    sw__hot_check(hot);
    return true;
}

/* Makes new pages present, after the lock: it takes long, and who touches them first loses only time. */
static void sw__hot_populate(struct sw__hot *hot, uint64_t before)
{
    uint64_t now = atomic_load_explicit(&hot->committed, memory_order_relaxed);
    if (now > before) {
        (void)sw__os_populate(hot->base + before, now - before);
    }
}

static struct sw__fmt_block *sw__hot_take_locked(struct sw__hot *hot,
                                                 enum sw__fmt_kind kind, uint32_t size)
{
    uint64_t address = atomic_load_explicit(&hot->next, memory_order_relaxed);
    if (!hot->base || !sw__hot_grow(hot, address + size)) {
        return NULL;
    }
    struct sw__fmt_block *block = (struct sw__fmt_block *)(void *)(hot->base + address);
    block->kind = (uint16_t)kind;
    block->size = size;
    block->address = address;
    block->thread = UINT32_MAX;
    block->file_id = hot->file_id;
    /* The magic last: a reader of a killed process takes a block only when its header is whole. */
    atomic_thread_fence(memory_order_release);
    block->magic = SW__FMT_BLOCK_MAGIC;
    atomic_store_explicit(&hot->next, address + size, memory_order_release);
    return block;
}

struct sw__fmt_block *sw__hot_take(struct sw__hot *hot, enum sw__fmt_kind kind,
                                   uint32_t size)
{
    pthread_mutex_lock(&hot->lock);
    uint64_t before = atomic_load_explicit(&hot->committed, memory_order_relaxed);
    struct sw__fmt_block *block = sw__hot_take_locked(hot, kind, size);
    pthread_mutex_unlock(&hot->lock);
    sw__hot_populate(hot, before);
    return block;
}

struct sw__fmt_block *sw__hot_try_take(struct sw__hot *hot, enum sw__fmt_kind kind,
                                       uint32_t size, bool *busy)
{
    *busy = pthread_mutex_trylock(&hot->lock) != 0;
    if (*busy) {
        return NULL;
    }
    uint64_t before = atomic_load_explicit(&hot->committed, memory_order_relaxed);
    struct sw__fmt_block *block =
        sw__hot_has_room(hot, size) ? sw__hot_take_locked(hot, kind, size) : NULL;
    pthread_mutex_unlock(&hot->lock);
    sw__hot_populate(hot, before);
    return block;
}

void sw__hot_trim(struct sw__hot *hot)
{
    /* Shorter only: growing could raise SIGXFSZ. */
    const uint64_t used = atomic_load(&hot->next);
    struct stat facts;
    if (hot->fd >= 0 && fstat(hot->fd, &facts) == 0 && facts.st_dev == hot->device &&
        facts.st_ino == hot->inode && (uint64_t)facts.st_size > used &&
        ftruncate(hot->fd, (off_t)used) == 0) {
        atomic_store(&hot->committed, used);
    }
}

void sw__hot_close(struct sw__hot *hot, bool settled, bool keep)
{
    if (!hot->base) {
        return;
    }
    sw__sigbus_unwatch(hot->base);
    uint64_t used = atomic_load(&hot->next);
    used = (used + SW__FMT_PAGE - 1) / SW__FMT_PAGE * SW__FMT_PAGE;
    if (settled) {
        munmap(hot->base, hot->reserved);
    } else if (mmap(hot->base, used, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                    0) != MAP_FAILED &&
               used < hot->reserved) {
        /* A thread is in the middle of a record. Its addresses stay valid, at the price of address
         * space alone: the new pages are not backed by anything until someone touches them. */
        munmap(hot->base + used, hot->reserved - used);
    }
    if (hot->path[0] && !keep && !hot->nameless) {
        unlink(hot->path);
    }
    if (sw__os_is_file(hot->fd, hot->device, hot->inode)) {
        close(hot->fd);
    }
    hot->fd = -1;
    hot->base = NULL;
    hot->path[0] = 0;
    pthread_mutex_destroy(&hot->lock);
}

void sw__hot_abandon(struct sw__hot *hot)
{
    if (!hot->base) {
        return;
    }
    /* The mapping is not inherited (MADV_DONTFORK), the descriptor is. */
    sw__sigbus_unwatch(hot->base);
    if (sw__os_is_file(hot->fd, hot->device, hot->inode)) {
        close(hot->fd);
    }
    hot->fd = -1;
    hot->base = NULL;
    hot->path[0] = 0;
}
