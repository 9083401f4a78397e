/* Every change is one write, so that nothing of the program's comes in between, and leaves the cursor and its colours as
 * they were: ESC 7 and ESC 8 save and restore both. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <stepwatch/version.h>

#include "cli/bottom_row.h"
#include "cli/cli.h"

#define ROWS_LEAST 4
#define COLUMNS_LEAST 20
#define LEAVING_MS 1000 /* for a terminal that is held (^S) */

#define ESC "\033"
#define SAVE ESC "7"
#define RESTORE ESC "8"
/* One row down, scrolling at the end and keeping the column (a newline would not), and one up again. */
#define DOWN ESC "D"
#define UP ESC "[1A"

void bottom_row_open(struct bottom_row *row, int fd)
{
    const char *term = getenv("TERM");
    char path[64];
    *row = (struct bottom_row){.fd = -1};
    if (!isatty(fd) || !term || !*term || strcmp(term, "dumb") == 0) {
        return;
    }
    /* A description of our own: not to wait for a terminal that is held (^S) must not become the program's mode. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    row->fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Hands over what is waiting. False: the terminal does not take it now. */
static bool flush_pending(struct bottom_row *row)
{
    while (row->pending_length > 0) {
        ssize_t got = write(row->fd, row->pending, row->pending_length);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            if (errno != EAGAIN) {
                row->pending_length = 0; /* it is gone */
            }
            return false;
        }
        row->pending_length -= (size_t)got;
        memmove(row->pending, row->pending + got, row->pending_length);
    }
    return true;
}

/* Either the whole of it or nothing, as far as that can be known before. */
SW_PRINTF(3, 4)
static bool put(struct bottom_row *row, int patience_ms, const char *format, ...)
{
    va_list args;
    char bytes[sizeof row->pending];
    va_start(args, format);
    int length = vsnprintf(bytes, sizeof bytes, format, args);
    va_end(args);
    struct pollfd ready = {.fd = row->fd, .events = POLLOUT};
    if (length <= 0 || (size_t)length >= sizeof bytes ||
        poll(&ready, 1, patience_ms) != 1 || !flush_pending(row)) {
        return false;
    }
    memcpy(row->pending, bytes, (size_t)length);
    row->pending_length = (size_t)length;
    (void)flush_pending(row);
    return true;
}

static bool is_foreground(const struct bottom_row *row)
{
    return tcgetpgrp(row->fd) == getpgrp();
}

/* Programs that draw their own screen, and prompts that edit lines, take the keys one by one. */
static bool is_in_use(const struct bottom_row *row)
{
    struct termios mode;
    return tcgetattr(row->fd, &mode) != 0 || !(mode.c_lflag & ICANON);
}

/* Gives the program one row less. The cursor may stand on that row, so the screen goes up by one if it does. */
static bool begin(struct bottom_row *row)
{
    struct winsize size;
    if (ioctl(row->fd, TIOCGWINSZ, &size) != 0 || size.ws_row < ROWS_LEAST ||
        !put(row, 0, DOWN UP SAVE ESC "[1;%ur" RESTORE, size.ws_row - 1u)) {
        return false;
    }
    row->rows = size.ws_row;
    row->columns = size.ws_col;
    row->claimed = row->shown = true;
    return true;
}

static bool has_changed(const struct bottom_row *row, const struct winsize *size)
{
    return size->ws_row != row->rows || size->ws_col != row->columns;
}

/* After a change of size where the line went is the terminal's secret; nothing but it is below the cursor. */
static bool sweep(struct bottom_row *row, int patience_ms)
{
    return put(row, patience_ms, SAVE ESC "[r" RESTORE SAVE ESC "[0m" ESC "[J" RESTORE);
}

unsigned bottom_row_room(struct bottom_row *row)
{
    struct winsize size;
    if (row->fd < 0 || !is_foreground(row) || ioctl(row->fd, TIOCGWINSZ, &size) != 0) {
        return 0;
    }
    if (is_in_use(row)) {
        row->shown = false;
        return 0;
    }
    if (row->claimed && has_changed(row, &size)) {
        if (!sweep(row, 0)) {
            return 0;
        }
        row->claimed = row->shown = false;
    }
    return size.ws_row >= ROWS_LEAST && size.ws_col >= COLUMNS_LEAST ? size.ws_col - 1
                                                                     : 0;
}

void bottom_row_show(struct bottom_row *row, const char *text, const char *colour)
{
    if (!row->shown && !begin(row)) {
        return;
    }
    put(row, 0, SAVE ESC "[%u;1H" ESC "[0%s%sm%s" ESC "[0m" ESC "[K" RESTORE, row->rows,
        colour ? ";" : "", colour ? colour : "", text);
}

void bottom_row_hide(struct bottom_row *row)
{
    struct winsize size;
    if (!row->claimed) {
        return;
    }
    row->claimed = row->shown = false;
    sigset_t output;
    sigset_t before;
    sigemptyset(&output); /* of a background job, if it should be one by now */
    sigaddset(&output, SIGTTOU);
    sigprocmask(SIG_BLOCK, &output, &before);
    if (ioctl(row->fd, TIOCGWINSZ, &size) == 0 && has_changed(row, &size)) {
        (void)sweep(row, LEAVING_MS);
    } else {
        put(row, LEAVING_MS, SAVE ESC "[r" ESC "[%u;1H" ESC "[0m" ESC "[2K" RESTORE,
            row->rows);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void bottom_row_close(struct bottom_row *row)
{
    if (row->fd >= 0) {
        bottom_row_hide(row);
        close(row->fd);
    }
    row->fd = -1;
}
