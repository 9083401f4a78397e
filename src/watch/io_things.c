/* Things: files, peers and the like, each with its sums, and which descriptor stands for which. Looking one up takes no lock:
 * an entry is filled first and then put into a table by one compare-and-swap. Entries stay for ever. */
#include "watch/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepwatch/error.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SLOTS 8192u                 /* a power of two, more than twice the things */
#define INODES 4096u                /* a power of two */
#define TEXTS ((size_t)1024 * 1024) /* bytes for paths */
#define FIRST_EPHEMERAL 32768       /* ports that stand for a client, not for a service */

static struct {
    struct sw__thing *thing;      /* by number, from 1 */
    _Atomic uint32_t *descriptor; /* number of the thing, 0 not looked up */
    char *texts;
    _Atomic size_t texts_used;
    _Atomic uint32_t count, files;
    _Atomic uint32_t highest; /* descriptor that was looked up */
    _Atomic uint64_t folded;
    _Atomic uint32_t slot[SLOTS];
    _Atomic uint32_t inode[INODES]; /* number of the thing of a file, or of another one */
    char own[1024];
    size_t own_length;
} io;

_Static_assert(SLOTS > 2 * SW__IO_THINGS, "the table of things gets too full");

static void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void set_fixed(uint32_t number, const char *text, enum sw_io_kind kind)
{
    struct sw__thing *thing = &io.thing[number];
    thing->text = text;
    thing->length = (uint32_t)strlen(text);
    thing->kind = (uint8_t)kind;
    atomic_store(&thing->size, UINT64_MAX);
}

int sw__io_things_open(void)
{
    if (io.thing) {
        return SW_OK;
    }
    struct sw__thing *things = map((SW__IO_THINGS + 8) * sizeof(*things));
    _Atomic uint32_t *descriptors = map(SW__IO_DESCRIPTORS * sizeof(*descriptors));
    io.texts = map(TEXTS);
    if (!things || !descriptors || !io.texts) {
        if (things) {
            munmap(things, (SW__IO_THINGS + 8) * sizeof(*things));
        }
        if (descriptors) {
            munmap((void *)descriptors, SW__IO_DESCRIPTORS * sizeof(*descriptors));
        }
        if (io.texts) {
            munmap(io.texts, TEXTS);
        }
        return SW_ENOMEM;
    }
    io.descriptor = descriptors;
    io.thing = things;
    set_fixed(SW__THING_MORE, "(more)", SW_IO_KIND_MORE);
    set_fixed(SW__THING_SEVERAL, "(several)", SW_IO_KIND_MORE);
    set_fixed(SW__THING_PIPES, "(pipes)", SW_IO_KIND_PIPE);
    set_fixed(SW__THING_OWN, "(recorder)", SW_IO_KIND_MORE);
    io.thing[SW__THING_OWN].own = true;
    set_fixed(SW__THING_MODULES, "(modules)", SW_IO_KIND_MODULE);
    atomic_store(&io.count, SW__THING_FIRST);
    return SW_OK;
}

void sw__io_things_own(const char *run_dir)
{
    char path[4096];
    const char *real = realpath(run_dir, path);
    io.own_length = 0;
    if (real && strlen(real) < sizeof(io.own) - 1) {
        memcpy(io.own, real, strlen(real) + 1);
        io.own_length = strlen(real);
    }
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    const size_t most = strlen(end);
    return length >= most && memcmp(text + length - most, end, most) == 0;
}

/* Results that we write, and our own package as Python reads it. */
static bool is_own(const char *text, size_t length)
{
    if (io.own_length && length > io.own_length && text[io.own_length] == '/' &&
        memcmp(text, io.own, io.own_length) == 0) {
        return true;
    }
    return strstr(text, "/stepwatch/") &&
           (ends_with(text, length, ".py") || ends_with(text, length, ".pyc"));
}

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 1469598103934665603ull;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (uint8_t)text[i]) * 1099511628211ull;
    }
    return hash ^ hash >> 29;
}

/* Fills a new entry; 0: there is no room. */
static uint32_t make(const char *text, size_t length, enum sw_io_kind kind, uint64_t hash)
{
    if (kind == SW_IO_KIND_FILE &&
        atomic_fetch_add_explicit(&io.files, 1, memory_order_relaxed) >= SW__IO_FILES) {
        atomic_fetch_sub_explicit(&io.files, 1, memory_order_relaxed);
        return 0;
    }
    const size_t at =
        atomic_fetch_add_explicit(&io.texts_used, length + 1, memory_order_relaxed);
    const uint32_t number = atomic_fetch_add_explicit(&io.count, 1, memory_order_relaxed);
    if (at + length + 1 > TEXTS || number >= SW__IO_THINGS) {
        atomic_fetch_sub_explicit(&io.texts_used, length + 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&io.count, 1, memory_order_relaxed);
        return 0;
    }
    memcpy(io.texts + at, text, length);
    io.texts[at + length] = '\0';
    struct sw__thing *thing = &io.thing[number];
    thing->text = io.texts + at;
    thing->length = (uint32_t)length;
    thing->hash = hash;
    thing->kind = (uint8_t)kind;
    atomic_store_explicit(&thing->size, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&thing->first, 0, memory_order_relaxed);
    return number;
}

static bool is_thing(uint32_t number, const char *text, size_t length,
                     enum sw_io_kind kind, uint64_t hash)
{
    const struct sw__thing *thing = &io.thing[number];
    return thing->hash == hash && thing->kind == kind && thing->length == length &&
           memcmp(thing->text, text, length) == 0;
}

/* The number of a thing, made if need be; 0: there is no room. */
static uint32_t number_of(const char *text, size_t length, enum sw_io_kind kind)
{
    const uint64_t hash = hash_of(text, length);
    uint32_t made = 0;
    for (uint32_t i = (uint32_t)hash & (SLOTS - 1);; i = (i + 1) & (SLOTS - 1)) {
        uint32_t number = atomic_load_explicit(&io.slot[i], memory_order_acquire);
        if (number == 0) {
            made = made ? made : make(text, length, kind, hash);
            if (made == 0 || atomic_compare_exchange_strong_explicit(
                                 &io.slot[i], &number, made, memory_order_release,
                                 memory_order_acquire)) {
                return made;
            }
            /* Another thread was first; `number` is what it put there. */
        }
        if (is_thing(number, text, length, kind, hash)) {
            return number; /* One that was made for nothing stays unused. */
        }
    }
}

/* A program with a framework reads thousands of files before it begins. They would take the place of those that matter. */
static bool is_module(const char *text, size_t length)
{
    return ends_with(text, length, ".py") || ends_with(text, length, ".pyc") ||
           ends_with(text, length, ".pth") || ends_with(text, length, ".so") ||
           strstr(text, ".so.");
}

/* A file that has no room of its own counts for its folder. */
static uint32_t file_number(const char *text, size_t length)
{
    if (is_own(text, length)) {
        return SW__THING_OWN;
    }
    if (is_module(text, length)) {
        return SW__THING_MODULES;
    }
    uint32_t number = number_of(text, length, SW_IO_KIND_FILE);
    if (number == 0) {
        atomic_fetch_add_explicit(&io.folded, 1, memory_order_relaxed);
        char folder[4096];
        const char *slash = memrchr(text, '/', length);
        const size_t kept = slash ? (size_t)(slash - text) : 0;
        if (kept + 3 <= sizeof folder) {
            memcpy(folder, text, kept);
            memcpy(folder + kept, "/*", 2);
            number = number_of(folder, kept + 2, SW_IO_KIND_FOLDER);
        }
    }
    return number ? number : SW__THING_MORE;
}

/* "10.0.0.1:443". A port that clients get by chance is left out. */
static size_t inet_text(const struct sockaddr_storage *address, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned port;
    const bool six = address->ss_family == AF_INET6;
    if (six) {
        const struct sockaddr_in6 *in = (const void *)address;
        inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host);
        port = ntohs(in->sin6_port);
    } else {
        const struct sockaddr_in *in = (const void *)address;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        port = ntohs(in->sin_port);
    }
    int length;
    if (port >= FIRST_EPHEMERAL || port == 0) {
        length = snprintf(out, size, "%s", host);
    } else {
        length = snprintf(out, size, six ? "[%s]:%u" : "%s:%u", host, port);
    }
    return length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

static uint32_t socket_number(int fd)
{
    char text[256];
    struct sockaddr_storage address;
    size_t length;
    memset(&address, 0, sizeof address);
    socklen_t size = sizeof address;
    bool peer = getpeername(fd, (struct sockaddr *)&address, &size) == 0;
    if (!peer) {
        size = sizeof address;
        if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
            address.ss_family = AF_UNSPEC;
        }
    }
    if (address.ss_family == AF_UNIX) {
        const struct sockaddr_un *un = (const void *)&address;
        const size_t head = offsetof(struct sockaddr_un, sun_path);
        const size_t most = size > head ? size - head : 0;
        /* Names of the abstract kind begin with a NUL. */
        const char *name = most && !un->sun_path[0] ? un->sun_path + 1 : un->sun_path;
        const size_t named = most > 0 ? strnlen(name, most - (name != un->sun_path)) : 0;
        const bool own_way = named && memmem(name, named, "/pymp-", 6);
        const int wrote =
            own_way ? snprintf(text, sizeof text, "unix:(multiprocessing)")
            : named ? snprintf(text, sizeof text, "unix:%s%.*s",
                               name == un->sun_path ? "" : "@", (int)named, name)
                    : snprintf(text, sizeof text, "unix socket");
        length = wrote < 0                     ? 0
                 : (size_t)wrote < sizeof text ? (size_t)wrote
                                               : sizeof text - 1;
    } else if (peer && (address.ss_family == AF_INET || address.ss_family == AF_INET6)) {
        length = inet_text(&address, text, sizeof text);
    } else if (address.ss_family == AF_INET || address.ss_family == AF_INET6) {
        length = (size_t)snprintf(text, sizeof text, "socket without a peer");
    } else {
        length = (size_t)snprintf(text, sizeof text, "other socket");
    }
    const uint32_t number = number_of(text, length, SW_IO_KIND_SOCKET);
    return number ? number : SW__THING_MORE;
}

static void note_size(struct sw__thing *thing, uint64_t size)
{
    uint64_t none = 0;
    if (atomic_load_explicit(&thing->first, memory_order_relaxed) == 0) {
        (void)atomic_compare_exchange_strong_explicit(
            &thing->first, &none, size + 1, memory_order_relaxed, memory_order_relaxed);
    }
    uint64_t before = atomic_load_explicit(&thing->size, memory_order_relaxed);
    while ((before == UINT64_MAX || size > before) &&
           !atomic_compare_exchange_weak_explicit(
               &thing->size, &before, size, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static uint64_t changed_ns(const struct stat *status)
{
    return (uint64_t)status->st_ctim.tv_sec * 1000000000u +
           (uint64_t)status->st_ctim.tv_nsec;
}

static _Atomic uint32_t *inode_slot(const struct stat *status)
{
    const uint64_t hash = ((uint64_t)status->st_ino ^ (uint64_t)status->st_dev << 40) *
                          0x9E3779B97F4A7C15ull;
    return &io.inode[hash >> 32 & (INODES - 1)];
}

/* The thing of a file whose path was looked up before and cannot have changed: renaming and removing change its time. 0: ask. */
static uint32_t known_file(const struct stat *status)
{
    const uint32_t number =
        atomic_load_explicit(inode_slot(status), memory_order_acquire);
    struct sw__thing *thing = &io.thing[number];
    return number && atomic_load(&thing->inode) == (uint64_t)status->st_ino &&
                   atomic_load(&thing->device) == (uint64_t)status->st_dev &&
                   atomic_load(&thing->changed_ns) == changed_ns(status)
               ? number
               : 0;
}

static void remember_file(const struct stat *status, uint32_t number)
{
    struct sw__thing *thing = &io.thing[number];
    atomic_store(&thing->changed_ns, 0);
    atomic_store(&thing->inode, (uint64_t)status->st_ino);
    atomic_store(&thing->device, (uint64_t)status->st_dev);
    atomic_store(&thing->changed_ns, changed_ns(status));
    atomic_store_explicit(inode_slot(status), number, memory_order_release);
}

static uint32_t look_up(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return SW__THING_MORE;
    }
    if (S_ISFIFO(status.st_mode)) {
        return SW__THING_PIPES;
    }
    if (S_ISSOCK(status.st_mode)) {
        return socket_number(fd);
    }
    const uint32_t known = S_ISREG(status.st_mode) ? known_file(&status) : 0;
    if (known) {
        note_size(&io.thing[known], (uint64_t)status.st_size);
        return known;
    }
    char link[32];
    char text[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, text, sizeof text - 1);
    if (length <= 0) {
        return SW__THING_MORE;
    }
    text[length] = '\0';
    if (S_ISREG(status.st_mode)) {
        if (ends_with(text, (size_t)length, " (deleted)")) {
            length -= (ssize_t)strlen(" (deleted)");
            text[length] = '\0';
        }
        const uint32_t number = file_number(text, (size_t)length);
        if (io.thing[number].kind == SW_IO_KIND_FILE) {
            note_size(&io.thing[number], (uint64_t)status.st_size);
            remember_file(&status, number);
        }
        return number;
    }
    const bool device = S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode);
    if (!device) {
        /* "anon_inode:[eventfd]" and the like; folders by their path. */
        char *colon = strstr(text, ":[");
        length = colon && text[0] != '/' && strncmp(text, "anon_inode:", 11) != 0
                     ? colon - text
                     : length;
    }
    const uint32_t number =
        number_of(text, (size_t)length, device ? SW_IO_KIND_DEVICE : SW_IO_KIND_MORE);
    return number ? number : SW__THING_MORE;
}

struct sw__thing *sw__io_thing_of(int fd)
{
    if (fd < 0 || (unsigned)fd >= SW__IO_DESCRIPTORS) {
        return &io.thing[SW__THING_MORE];
    }
    uint32_t number = atomic_load_explicit(&io.descriptor[fd], memory_order_acquire);
    if (SW__UNLIKELY(number == 0)) {
        number = look_up(fd);
        atomic_store_explicit(&io.descriptor[fd], number, memory_order_release);
        uint32_t highest = atomic_load_explicit(&io.highest, memory_order_relaxed);
        while ((uint32_t)fd > highest &&
               !atomic_compare_exchange_weak_explicit(&io.highest, &highest, (uint32_t)fd,
                                                      memory_order_relaxed,
                                                      memory_order_relaxed)) {
        }
    }
    return &io.thing[number];
}

struct sw__thing *sw__io_thing_known(int fd)
{
    const uint32_t number =
        fd >= 0 && (unsigned)fd < SW__IO_DESCRIPTORS
            ? atomic_load_explicit(&io.descriptor[fd], memory_order_acquire)
            : 0;
    return number ? &io.thing[number] : NULL;
}

struct sw__thing *sw__io_thing_at(int folder, const char *path)
{
    char text[4096];
    size_t length = 0;
    if (!path) {
        return &io.thing[SW__THING_MORE];
    }
    if (path[0] != '/') {
        char link[40];
        snprintf(link, sizeof link,
                 folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        const ssize_t got = readlink(link, text, sizeof text - 2);
        length = got > 0 ? (size_t)got : 0;
        text[length++] = '/';
        path += strncmp(path, "./", 2) == 0 ? 2 : 0;
    }
    const size_t more = strnlen(path, sizeof text);
    if (length + more >= sizeof text) {
        return &io.thing[SW__THING_MORE];
    }
    memcpy(text + length, path, more);
    text[length + more] = '\0';
    return &io.thing[file_number(text, length + more)];
}

struct sw__thing *sw__io_thing_number(uint32_t number)
{
    return &io.thing[number];
}

void sw__io_forget(int fd)
{
    if (fd >= 0 && (unsigned)fd < SW__IO_DESCRIPTORS) {
        atomic_store_explicit(&io.descriptor[fd], 0, memory_order_relaxed);
    }
}

void sw__io_forget_from(unsigned first, unsigned last)
{
    const unsigned highest = atomic_load_explicit(&io.highest, memory_order_relaxed);
    last = last < highest ? last : highest;
    for (unsigned fd = first; fd <= last; fd++) {
        sw__io_forget((int)fd);
    }
}

void sw__io_forget_all(void)
{
    sw__io_forget_from(0, SW__IO_DESCRIPTORS - 1);
}

uint64_t sw__io_folded(void)
{
    return atomic_load_explicit(&io.folded, memory_order_relaxed);
}

size_t sw__io_thing_count(void)
{
    const uint32_t count = atomic_load_explicit(&io.count, memory_order_acquire);
    return count < SW__IO_THINGS ? count : SW__IO_THINGS;
}

void sw__io_things_clear(void)
{
    const size_t count = io.thing ? sw__io_thing_count() : 0;
    atomic_store_explicit(&io.folded, 0, memory_order_relaxed);
    for (size_t i = 1; i < count; i++) {
        struct sw__thing *thing = &io.thing[i];
        for (unsigned op = 0; op < SW_IO_OPERATIONS; op++) {
            if (atomic_load_explicit(&thing->sum[op].calls, memory_order_relaxed)) {
                memset(&thing->sum[op], 0, sizeof(thing->sum[op]));
            }
            if (atomic_load_explicit(&thing->shared[op].calls, memory_order_relaxed)) {
                memset(&thing->shared[op], 0, sizeof(thing->shared[op]));
            }
        }
        memset(thing->row, 0, sizeof(thing->row));
        memset(thing->told, 0, sizeof(thing->told));
        atomic_store_explicit(&thing->failed, 0, memory_order_relaxed);
        atomic_store_explicit(&thing->owner, NULL, memory_order_relaxed);
        if (atomic_load_explicit(&thing->size, memory_order_relaxed) != UINT64_MAX) {
            atomic_store_explicit(&thing->size, UINT64_MAX, memory_order_relaxed);
        }
    }
}
