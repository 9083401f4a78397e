/* fork: the parent's helper stops for the moment of the fork, the child forgets everything that was
 * its parent's and starts a file of its own with its first record. */
#include "base/os.h"
#include "record/recorder.h"
#include "record/watchers.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a child leaves alone. It is kept, for tools that look for leaks. */
static struct {
    struct sw__home home;
    struct sw__pool pool;
    struct sw__mirror mirror;
} sw__abandoned;

static void sw__fork_prepare(void)
{
    struct sw__session *session = &sw__session;
    /* Before the lock: what their threads are at may need it. */
    sw__watchers_before_fork();
    sw__lock(&session->lock);
    sw__helper_stop(true);
    sw__names_before_fork();
}

static void sw__fork_parent(void)
{
    /* The helper comes back at the next step or when chunks run low: a program that forks many children in
     * a row does not start and stop it for each. */
    sw__names_after_fork(false);
    sw__unlock(&sw__session.lock);
    sw__watchers_after_fork(false);
}

/* The child's half, also for children that were made behind the C library's back. No inherited lock is
 * taken and no inherited thread joined. */
void sw__forked_child(void)
{
    struct sw__session *session = &sw__session;
    uint32_t state = atomic_load(&session->state);
    pthread_mutex_init(&session->lock, NULL);
    sw__holding = 0;
    sw__names_after_fork(true);
    sw__helper_forget();
    sw__memory_forget();
    sw__thread_forget();
    if (state == SW__SESSION_ON || state == SW__SESSION_ENDING) {
        /* The parent's memory is not mapped here, its descriptors are. What is on the heap stays: it may
         * have been in the middle of a change. */
        sw__hot_abandon(&session->hot);
        if (sw__os_is_file(session->home.fd, session->home.device, session->home.inode)) {
            close(session->home.fd);
        }
        sw__abandoned.home = session->home;
        sw__abandoned.pool = session->pool;
        sw__abandoned.mirror = session->mirror;
        memset(&session->home, 0, sizeof(session->home));
        session->home.fd = -1;
        memset(&session->pool, 0, sizeof(session->pool));
        memset(&session->mirror, 0, sizeof(session->mirror));
        session->super = NULL;
        session->threads = NULL;
        session->watchers = NULL;
        /* What lies in memory alone is for the parent's eyes: a child's part goes where the parent has made room. */
        struct stat facts;
        const bool alone = session->brief && stat(session->run_dir, &facts) != 0;
        session->brief = false;
        atomic_store(&session->state, alone ? SW__SESSION_OFF : SW__SESSION_FORKED);
        if (alone) {
            sw__names_open_gates(false);
        }
    }
    sw__watchers_after_fork(true);
}

static void sw__fork_register_once(void)
{
    (void)pthread_atfork(sw__fork_prepare, sw__fork_parent, sw__forked_child);
}

void sw__fork_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, sw__fork_register_once);
}
