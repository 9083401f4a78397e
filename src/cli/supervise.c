/* The program stays in our process group, so that the terminal sends it ^C and ^Z itself and whatever
 * stands beside us in a pipeline is not disturbed. Our own copies of those signals are taken from a queue;
 * only signals that somebody sent to us alone are passed on (witness.h tells which those are). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/supervise.h"
#include "cli/witness.h"

static const int forwarded[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGTSTP};
#define FORWARDED (sizeof forwarded / sizeof forwarded[0])

#define PROGRESS_NS 1000000000u

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int outcome_code(const struct outcome *outcome)
{
    if (outcome->start_error) {
        return outcome->start_error == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE;
    }
    return outcome->signal ? 128 + outcome->signal : outcome->code;
}

/* In the child: becomes the program, or tells the parent why not. */
static void become(char **argv, const sigset_t *mask, const struct sigaction *sigchld,
                   int report, pid_t parent)
{
    /* Who kills us by SIGKILL means the program, and cannot be told. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(CLI_NOT_FOUND);
    }
    sigaction(SIGCHLD, sigchld, NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[0], argv);
    int error = errno;
    ssize_t ignored = write(report, &error, sizeof error);
    (void)ignored;
    _exit(CLI_NOT_FOUND);
}

/* 0 once the program is running, or the errno that kept it from it. */
static int await_start(int report)
{
    int error = 0;
    ssize_t got;
    do {
        got = read(report, &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof error ? error : 0;
}

/* execvp says EACCES also when a folder of PATH may not be searched. As in a shell, a program that is nowhere
 * to be seen was not found. */
static int true_reason(const char *program, int error)
{
    const char *path = getenv("PATH");
    if (error != EACCES || strchr(program, '/') || !path) {
        return error;
    }
    while (*path) {
        size_t length = strcspn(path, ":");
        char file[PATH_MAX];
        int used = snprintf(file, sizeof file, "%.*s/%s", (int)(length ? length : 1),
                            length ? path : ".", program);
        if (used > 0 && (size_t)used < sizeof file && access(file, F_OK) == 0) {
            return error;
        }
        path += length + (path[length] == ':');
    }
    return ENOENT;
}

/* Whether the terminal sent it to all of our process group, the program included. */
static bool sent_by_terminal(const siginfo_t *info)
{
    bool kernel = info->si_code > 0; /* SI_USER and its like are 0 and below */
    /* When a terminal goes away, only the leader of the session hears of it. */
    return kernel && !(info->si_signo == SIGHUP && getsid(0) == getpid());
}

static bool in_foreground(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return false;
    }
    bool result = tcgetpgrp(fd) == getpgrp();
    close(fd);
    return result;
}

static bool is_pending(int number)
{
    sigset_t set;
    return sigpending(&set) == 0 && sigismember(&set, number) == 1;
}

static void drain(int number)
{
    const struct timespec at_once = {0, 0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    while (sigtimedwait(&set, NULL, &at_once) > 0) {
    }
}

/* Stops with the program and as it did, so that the shell that waits for us gets its prompt; both
 * continue together. The terminal's own signal may be waiting for us, or still be on its way: then that one
 * stops us, and SIGCONT, which is blocked, tells that it has. */
static void stop_together(pid_t child, int number, struct progress *progress)
{
    progress_pause(progress);
    struct sigaction action;
    bool usual = sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_DFL;
    sigset_t one;
    sigset_t before;
    sigemptyset(&one);
    sigaddset(&one, number);
    drain(SIGCONT);
    sigprocmask(SIG_UNBLOCK, &one, &before);
    if (!is_pending(SIGCONT)) {
        kill(getpid(), usual ? number : SIGSTOP);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    drain(SIGCONT);
    kill(child, SIGCONT);
}

struct watch {
    pid_t child;
    pid_t witness;             /* 0: none */
    struct progress *progress; /* NULL: none is shown */
    uint64_t next_ns;          /* when it is next looked at */
    bool stopped;
    int status;
};

/* Looks at what became of the program. True when it has ended. */
static bool look(struct watch *watch)
{
    int status;
    pid_t got;
    while ((got = waitpid(watch->child, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (WIFSTOPPED(status)) {
            /* Only a stop that came from the terminal is one of the whole job. */
            bool job = WSTOPSIG(status) != SIGSTOP || in_foreground();
            watch->stopped = true;
            if (job) {
                stop_together(watch->child, WSTOPSIG(status), watch->progress);
                watch->stopped = false;
            }
        } else if (WIFCONTINUED(status)) {
            watch->stopped = false;
        } else {
            watch->status = status;
            return true;
        }
    }
    if (got < 0 && errno == ECHILD) {
        watch->status = 0; /* cannot be: nobody else waits for it */
        return true;
    }
    return false;
}

/* The next signal, or -1 after a look at the progress. */
static int await_signal(struct watch *watch, const sigset_t *set, siginfo_t *info)
{
    if (!watch->progress) {
        return sigwaitinfo(set, info);
    }
    uint64_t now = now_ns(CLOCK_MONOTONIC);
    if (now >= watch->next_ns) {
        progress_tick(watch->progress);
        watch->next_ns = now + PROGRESS_NS;
        return -1;
    }
    uint64_t left = watch->next_ns - now;
    const struct timespec patience = {.tv_sec = (time_t)(left / 1000000000u),
                                      .tv_nsec = (long)(left % 1000000000u)};
    int number = sigtimedwait(set, info, &patience);
    if (number == SIGWINCH) {
        watch->next_ns = 0; /* the line has to be drawn anew */
    }
    return number;
}

static void follow(struct watch *watch, const sigset_t *set)
{
    while (!look(watch)) {
        siginfo_t info;
        int number = await_signal(watch, set, &info);
        if (number < 0 || number == SIGCHLD || (number == SIGCONT && !watch->stopped)) {
            continue;
        }
        if (number == SIGTSTP && watch->stopped && sent_by_terminal(&info)) {
            /* It had stopped before, and now the shell is wanted. */
            stop_together(watch->child, number, watch->progress);
            watch->stopped = false;
        } else if (!sent_by_terminal(&info) && !witness_has(&watch->witness, number)) {
            kill(watch->child, number);
        }
    }
}

static volatile sig_atomic_t final_code;

static void end_now(int number)
{
    (void)number;
    _exit(final_code);
}

/* From here on a signal that means "end" ends us, with the program's code. */
static void release_signals(const sigset_t *set, const sigset_t *before, int code)
{
    const struct timespec at_once = {0, 0};
    final_code = code;
    while (sigtimedwait(set, NULL, &at_once) > 0) {
    }
    for (size_t i = 0; i < FORWARDED; i++) {
        struct sigaction action = {.sa_handler = end_now};
        struct sigaction old;
        if (forwarded[i] != SIGTSTP && sigaction(forwarded[i], NULL, &old) == 0 &&
            old.sa_handler != SIG_IGN) {
            sigaction(forwarded[i], &action, NULL);
        }
    }
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_SETMASK, before, NULL);
}

void supervise(char **argv, struct progress *progress, struct outcome *outcome)
{
    *outcome = (struct outcome){.code = -1};
    int channel[2];
    if (pipe2(channel, O_CLOEXEC) != 0) {
        outcome->start_error = errno;
        return;
    }
    sigset_t set;
    sigset_t before;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGCONT);
    for (size_t i = 0; i < FORWARDED; i++) {
        sigaddset(&set, forwarded[i]);
    }
    if (progress) {
        sigaddset(&set, SIGWINCH);
    }
    sigprocmask(SIG_BLOCK, &set, &before);
    struct sigaction usual = {.sa_handler = SIG_DFL};
    struct sigaction sigchld;
    sigaction(SIGCHLD, &usual, &sigchld);

    outcome->started_real_ns = now_ns(CLOCK_REALTIME);
    outcome->started_mono_ns = now_ns(CLOCK_MONOTONIC);
    const pid_t self = getpid();
    struct watch watch = {.progress = progress, .child = fork()};
    if (watch.child == 0) {
        close(channel[0]);
        become(argv, &before, &sigchld, channel[1], self);
    }
    int fork_error = errno;
    close(channel[1]);
    outcome->start_error =
        watch.child < 0 ? fork_error : true_reason(argv[0], await_start(channel[0]));
    close(channel[0]);
    outcome->process = (long)watch.child;
    if (watch.child > 0) {
        watch.next_ns = now_ns(CLOCK_MONOTONIC) + PROGRESS_NS;
        watch.witness = witness_begin();
        follow(&watch, &set);
        witness_end(watch.witness);
        progress_pause(progress);
        outcome->duration_ns = now_ns(CLOCK_MONOTONIC) - outcome->started_mono_ns;
        if (WIFSIGNALED(watch.status)) {
            outcome->signal = WTERMSIG(watch.status);
        } else {
            outcome->code = WEXITSTATUS(watch.status);
        }
    }
    release_signals(&set, &before, outcome_code(outcome));
}
