#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/out_file.h"

static int cannot(const char *path, int error, sw_error_info *info)
{
    return sw_error_set(info, SW_EWRITE, "%.300s cannot be written: %s.", path,
                        strerror(error));
}

/* The mode that a new file gets here. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

int out_file_open(struct out_file *file, const char *path, sw_error_info *info)
{
    *file = (struct out_file){.fd = STDOUT_FILENO, .shown = "the result"};
    if (!path || strcmp(path, "-") == 0) {
        return SW_OK;
    }
    file->shown = path;
    struct stat status;
    mode_t mode = usual_mode();
    /* A link stays a link: the file that it points to is replaced. */
    if (stat(path, &status) == 0) {
        if (!S_ISREG(status.st_mode)) {
            file->fd = S_ISDIR(status.st_mode) ? -1 : open(path, O_WRONLY | O_CLOEXEC);
            return file->fd >= 0
                       ? SW_OK
                       : cannot(path, S_ISDIR(status.st_mode) ? EISDIR : errno, info);
        }
        mode = status.st_mode & 0777;
        if (access(path, W_OK) != 0 || !realpath(path, file->path)) {
            return cannot(path, errno, info);
        }
    } else if (strlen(path) >= sizeof file->path) {
        return cannot(path, ENAMETOOLONG, info);
    } else {
        strcpy(file->path, path);
    }
    int length =
        snprintf(file->meanwhile, sizeof file->meanwhile, "%s.XXXXXX", file->path);
    if (length < 0 || (size_t)length >= sizeof file->meanwhile) {
        return cannot(path, ENAMETOOLONG, info);
    }
    file->fd = *path ? mkostemp(file->meanwhile, O_CLOEXEC) : -1;
    if (file->fd < 0) {
        return cannot(*path ? path : "''", *path ? errno : ENOENT, info);
    }
    if (fchmod(file->fd, mode) != 0) { /* some file systems have no modes */
        errno = 0;
    }
    return SW_OK;
}

int out_file_close(struct out_file *file, sw_error_info *info)
{
    if (file->fd == STDOUT_FILENO) {
        return SW_OK;
    }
    int error = close(file->fd) == 0 ? 0 : errno;
    if (file->path[0] && !error && rename(file->meanwhile, file->path) != 0) {
        error = errno;
    }
    if (error && file->path[0]) {
        unlink(file->meanwhile);
    }
    return error ? cannot(file->shown, error, info) : SW_OK;
}

void out_file_discard(struct out_file *file)
{
    if (file->fd != STDOUT_FILENO) {
        close(file->fd);
        if (file->path[0]) {
            unlink(file->meanwhile);
        }
    }
}

int out_file_write(const char *path,
                   int (*write)(sw_writer *writer, const void *context,
                                sw_error_info *info),
                   const void *context)
{
    struct out_file file;
    sw_error_info info = {0};
    int error = out_file_open(&file, path, &info);
    if (error) {
        cli_complain("%s", info.message);
        return CLI_UNREADABLE;
    }
    sw_writer *writer = sw_writer_to_fd(file.fd);
    error = writer ? write(writer, context, &info) : SW_ENOMEM;
    if (error) {
        sw_writer_close(writer, NULL);
        out_file_discard(&file);
        cli_complain("%s", info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    error = sw_writer_close(writer, &info);
    if (error) {
        out_file_discard(&file);
        if (info.os_errno == EPIPE) {
            return CLI_GOOD;
        }
        cli_complain("%.300s could not be written: %s", file.shown,
                     info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    error = out_file_close(&file, &info);
    if (error) {
        cli_complain("%s", info.message);
        return CLI_UNREADABLE;
    }
    return CLI_GOOD;
}
