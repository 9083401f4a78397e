/* Folding: completing the home file of a process that died from what its hot file still holds. */
#include "base/memory.h"
#include "base/os.h"
#include "store/format.h"
#include "store/home.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <stepwatch/store.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the home file already has a block: state blocks by address, chunks by name. */
struct sw__known {
    uint16_t kind;
    uint32_t thread;
    uint32_t used;
    uint32_t size;
    uint64_t key; /* address or sequence */
    uint64_t offset;
};

struct sw__fold {
    int home, hot;
    uint64_t home_size, hot_size;
    struct sw__fmt_super super; /* of the hot file */
    uint64_t file_id;
    struct sw__known *known;
    size_t known_count, known_capacity;
    uint64_t end; /* of the home file */
    uint8_t *buffer;
    size_t buffer_size;
};

static bool sw__fold_is_chunk(uint16_t kind)
{
    return kind == SW__BLOCK_EVENTS || kind == SW__BLOCK_STEPS;
}

static bool sw__fold_sound(const struct sw__fold *fold, const struct sw__fmt_block *block)
{
    return block->magic == SW__FMT_BLOCK_MAGIC && block->size >= SW__FMT_PAGE &&
           block->size % SW__FMT_PAGE == 0 && block->size <= (1u << 30) &&
           (block->kind == SW__BLOCK_FREE || block->file_id == fold->file_id);
}

static int sw__fold_index(struct sw__fold *fold)
{
    uint64_t offset = SW__FMT_PAGE;
    while (offset + sizeof(struct sw__fmt_block) <= fold->home_size) {
        struct sw__fmt_block block;
        size_t got = 0;
        if (sw__os_pread_all(fold->home, &block, sizeof(block), offset, &got) ||
            got < sizeof(block) || !sw__fold_sound(fold, &block)) {
            offset += SW__FMT_PAGE;
            continue;
        }
        if (fold->known_count == fold->known_capacity) {
            size_t capacity = fold->known_capacity ? fold->known_capacity * 2 : 256;
            struct sw__known *known = sw__realloc(fold->known, capacity, sizeof(*known));
            if (!known) {
                return SW_ENOMEM;
            }
            fold->known = known;
            fold->known_capacity = capacity;
        }
        fold->known[fold->known_count++] = (struct sw__known){
            .kind = block.kind,
            .thread = block.thread,
            .used = atomic_load_explicit(&block.used, memory_order_relaxed),
            .size = block.size,
            .key = sw__fold_is_chunk(block.kind) ? block.sequence : block.address,
            .offset = offset,
        };
        offset += block.size;
    }
    fold->end = offset > fold->home_size ? offset : fold->home_size;
    fold->end = (fold->end + SW__FMT_PAGE - 1) / SW__FMT_PAGE * SW__FMT_PAGE;
    return 0;
}

static const struct sw__known *sw__fold_find(const struct sw__fold *fold,
                                             const struct sw__fmt_block *block)
{
    bool chunk = sw__fold_is_chunk(block->kind);
    for (size_t i = 0; i < fold->known_count; i++) {
        const struct sw__known *known = &fold->known[i];
        if (known->kind == block->kind &&
            known->key == (chunk ? block->sequence : block->address) &&
            (!chunk || known->thread == block->thread)) {
            return known;
        }
    }
    return NULL;
}

/* Counts the records of a chunk that was being given up, unless the writer had done so. */
static void sw__fold_redo(struct sw__fold *fold, const struct sw__fmt_redo *redo,
                          uint32_t used)
{
    struct sw__fmt_thread *slots = (struct sw__fmt_thread *)(void *)fold->buffer;
    for (size_t i = 0; redo->place && (i + 1) * sizeof(*slots) <= used; i++) {
        if (slots[i].index == redo->thread && slots[i].incarnations &&
            atomic_load_explicit(&slots[i].overwritten, memory_order_relaxed) ==
                redo->before) {
            atomic_fetch_add_explicit(&slots[i].overwritten, redo->records,
                                      memory_order_relaxed);
        }
    }
}

/* Makes the block free that was being given up in the home file when its writer died. */
static int sw__fold_free(struct sw__fold *fold)
{
    struct sw__fmt_redo *redo = &fold->super.redo[SW__REDO_HOME];
    for (size_t i = 0; redo->place && i < fold->known_count; i++) {
        const struct sw__known *known = &fold->known[i];
        if (known->offset == redo->place && known->kind == SW__BLOCK_EVENTS &&
            known->thread == redo->thread) {
            return sw__home_write_free(fold->home, redo->place, known->size);
        }
    }
    return 0;
}

/* Copies one block of the hot file. Returns 0 (also when it is in the home file already) or an error. */
static int sw__fold_block(struct sw__fold *fold, const struct sw__fmt_block *block,
                          uint64_t offset, sw_fold_result *result)
{
    uint32_t used = atomic_load_explicit(&block->used, memory_order_relaxed);
    uint64_t room = fold->hot_size - offset - sizeof(*block);
    used = used > block->size - sizeof(*block) ? (uint32_t)(block->size - sizeof(*block))
                                               : used;
    used = used > room ? (uint32_t)room : used;
    const struct sw__known *known = sw__fold_find(fold, block);
    const struct sw__fmt_redo *redo = &fold->super.redo[SW__REDO_HOT];
    if (redo->place && redo->place == block->address && block->kind == SW__BLOCK_EVENTS &&
        block->thread == redo->thread) {
        return 0; /* It was being given up when its writer died. */
    }
    if (block->kind == SW__BLOCK_FREE || (sw__fold_is_chunk(block->kind) && used == 0) ||
        (known && sw__fold_is_chunk(block->kind) && known->used >= used)) {
        return 0;
    }
    if (used > fold->buffer_size) {
        uint8_t *buffer = sw__realloc(fold->buffer, used, 1);
        if (!buffer) {
            return SW_ENOMEM;
        }
        fold->buffer = buffer;
        fold->buffer_size = used;
    }
    size_t got = 0;
    if (sw__os_pread_all(fold->hot, fold->buffer, used, offset + sizeof(*block), &got) ||
        got < used) {
        return SW_EREAD;
    }
    if (block->kind == SW__BLOCK_THREADS) {
        sw__fold_redo(fold, &fold->super.redo[SW__REDO_HOT], used);
        sw__fold_redo(fold, &fold->super.redo[SW__REDO_HOME], used);
    }
    struct sw__fmt_block copy;
    memcpy(&copy, block, sizeof(copy));
    copy.size = (uint32_t)((sizeof(copy) + used + SW__FMT_PAGE - 1) / SW__FMT_PAGE *
                           SW__FMT_PAGE);
    copy.revision++;
    atomic_store_explicit(&copy.used, used, memory_order_relaxed);
    uint64_t at = fold->end;
    if (known && known->size >= copy.size) {
        copy.size = known->size;
        at = known->offset;
    }
    int failed = sw__os_pwrite_all(fold->home, fold->buffer, used, at + sizeof(copy));
    if (!failed) {
        failed = sw__os_pwrite_all(fold->home, &copy, sizeof(copy), at);
    }
    if (!failed && at == fold->end) {
        failed = sw__os_pwrite_all(fold->home, "", 1, at + copy.size - 1);
        fold->end += copy.size;
    }
    if (failed) {
        errno = -failed;
        return failed == -ENOSPC ? SW_ENOSPACE : SW_EWRITE;
    }
    result->blocks++;
    result->bytes += copy.size;
    return 0;
}

static int sw__fold_blocks(struct sw__fold *fold, sw_fold_result *result)
{
    uint64_t offset = SW__FMT_PAGE;
    int status = sw__fold_index(fold);
    while (!status && offset + sizeof(struct sw__fmt_block) <= fold->hot_size) {
        struct sw__fmt_block block;
        size_t got = 0;
        if (sw__os_pread_all(fold->hot, &block, sizeof(block), offset, &got) ||
            got < sizeof(block)) {
            break;
        }
        if (!sw__fold_sound(fold, &block)) {
            offset += SW__FMT_PAGE;
            continue;
        }
        status = sw__fold_block(fold, &block, offset, result);
        offset += block.size;
    }
    return status;
}

/* The one who holds the lock on the hot file is its process, whatever namespace its pid is from. */
static bool sw__fold_alive(const struct sw__fmt_super *super, int hot)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (hot >= 0 && fcntl(hot, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) {
        return true;
    }
    uint64_t start = sw__os_process_start((pid_t)super->pid);
    return start && start == super->process_start;
}

static bool sw__fold_super_sound(const struct sw__fmt_super *super, uint32_t role)
{
    return memcmp(super->magic, SW__FMT_MAGIC, 8) == 0 &&
           super->endian == SW__FMT_ENDIAN && super->version <= 1 && super->role == role;
}

/* Opens the hot file that the home file names, if it is what it should be. */
static int sw__fold_open_hot(struct sw__fold *fold, const struct sw__fmt_super *home)
{
    struct stat facts;
    size_t got = 0;
    char path[sizeof(home->hot_path)];
    memcpy(path, home->hot_path, sizeof(path));
    path[sizeof(path) - 1] = 0;
    int fd = path[0] ? sw__os_open_read(path) : -ENOENT;
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &facts) || !S_ISREG(facts.st_mode) || facts.st_uid != geteuid() ||
        sw__os_pread_all(fd, &fold->super, sizeof(fold->super), 0, &got) ||
        got < sizeof(fold->super) || !sw__fold_super_sound(&fold->super, SW__ROLE_HOT) ||
        memcmp(fold->super.file_id, home->file_id, 16) != 0) {
        close(fd);
        return -1;
    }
    fold->hot_size = (uint64_t)facts.st_size;
    return fd;
}

int sw_store_fold(const char *path, sw_fold_result *result, sw_error_info *info)
{
    sw_fold_result unused;
    struct sw__fold fold;
    struct sw__fmt_super home;
    struct stat facts;
    size_t got = 0;
    int status = 0;
    result = result ? result : &unused;
    memset(result, 0, sizeof(*result));
    memset(&fold, 0, sizeof(fold));
    fold.hot = -1;
    fold.home = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fold.home < 0) {
        return sw_error_set(info, SW_EOPEN, "%s cannot be opened for completing it: %s",
                            path, strerror(errno));
    }
    (void)flock(fold.home, LOCK_EX);
    if (fstat(fold.home, &facts) ||
        sw__os_pread_all(fold.home, &home, sizeof(home), 0, &got) || got < sizeof(home) ||
        !sw__fold_super_sound(&home, SW__ROLE_HOME)) {
        status = sw_error_set(info, SW_EFORMAT, "%s is not a stepwatch trace", path);
        goto out;
    }
    if (atomic_load_explicit(&home.state, memory_order_relaxed) != SW__STATE_OPEN) {
        goto out;
    }
    fold.hot = sw__fold_open_hot(&fold, &home);
    if (sw__fold_alive(&home, fold.hot)) {
        result->alive = true;
        goto out;
    }
    if (fold.hot < 0) {
        result->hot_missing = true;
        goto out;
    }
    fold.home_size = (uint64_t)facts.st_size;
    memcpy(&fold.file_id, home.file_id, sizeof(fold.file_id));
    status = sw__fold_blocks(&fold, result);
    if (!status && sw__fold_free(&fold)) {
        status = SW_EWRITE;
    }
    if (!status) {
        fold.super.role = SW__ROLE_HOME;
        fold.super.home_end = fold.end;
        memset(fold.super.redo, 0, sizeof(fold.super.redo));
        fold.super.revision = home.revision + 1;
        atomic_store_explicit(&fold.super.state, SW__STATE_FOLDED, memory_order_relaxed);
        memset(fold.super.hot_path, 0, sizeof(fold.super.hot_path));
        memset(fold.super.home_path, 0, sizeof(fold.super.home_path));
        int failed = sw__os_pwrite_all(fold.home, &fold.super, sizeof(fold.super), 0);
        status = failed ? SW_EWRITE : 0;
        errno = -failed;
    }
    if (status) {
        status = sw_error_set(info, status, "%s could not be completed from memory: %s",
                              path, errno ? strerror(errno) : sw_error_text(status));
        goto out;
    }
    result->folded = true;
    home.hot_path[sizeof(home.hot_path) - 1] = 0;
    unlink(home.hot_path);
out:
    if (fold.hot >= 0) {
        close(fold.hot);
    }
    close(fold.home);
    sw__free(fold.known);
    sw__free(fold.buffer);
    return status;
}
