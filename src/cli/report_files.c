#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/out_file.h"
#include "cli/report_files.h"

static int complain(const char *shown, int error, const sw_error_info *info)
{
    cli_complain("%.300s could not be written: %s", shown,
                 info->message[0] ? info->message : sw_error_text(error));
    return CLI_UNREADABLE;
}

int report_write_html(const struct cli_case *it, const char *path)
{
    struct out_file file;
    sw_error_info info = {0};
    if (out_file_open(&file, path, &info) != SW_OK) {
        cli_complain("%s", info.message);
        return CLI_UNREADABLE;
    }
    sw_writer *writer = sw_writer_to_fd(file.fd);
    if (writer) {
        sw_export_report_html(writer, it->summary, it->findings);
    }
    const int error = writer ? sw_writer_close(writer, &info) : SW_ENOMEM;
    if (error) {
        out_file_discard(&file);
        return info.os_errno == EPIPE ? CLI_GOOD : complain(file.shown, error, &info);
    }
    if (out_file_close(&file, &info) != SW_OK) {
        cli_complain("%s", info.message);
        return CLI_UNREADABLE;
    }
    return CLI_GOOD;
}

/* --- tables --- */

struct csv_files {
    struct out_file file[SW_CSV_TABLES];
    char path[SW_CSV_TABLES][PATH_MAX];
    size_t open;
};

/* Begins and fills one file; on error nothing of it stays. */
static int fill(struct csv_files *files, const struct cli_case *it, const char *folder,
                sw_error_info *info)
{
    const enum sw_csv_table table = (enum sw_csv_table)files->open;
    struct out_file *file = &files->file[table];
    char *path = files->path[table];
    const int length =
        snprintf(path, PATH_MAX, "%s/%s.csv", folder, sw_csv_table_name(table));
    if (length < 0 || length >= PATH_MAX) {
        return sw_error_set(info, SW_EWRITE, "%.300s cannot be written: %s.", folder,
                            strerror(ENAMETOOLONG));
    }
    int error = out_file_open(file, path, info);
    if (error) {
        return error;
    }
    sw_writer *writer = sw_writer_to_fd(file->fd);
    error = writer ? sw_export_csv(writer, table, it->summary, it->findings) : SW_ENOMEM;
    sw_error_info why = {0};
    const int unwritten = sw_writer_close(writer, &why);
    error = error ? error : unwritten;
    if (error) {
        out_file_discard(file);
        return sw_error_set(info, error, "%.300s could not be written: %s", path,
                            why.message[0] ? why.message : sw_error_text(error));
    }
    files->open++;
    return SW_OK;
}

int report_write_csv(const struct cli_case *it, const char *folder)
{
    struct csv_files files = {.open = 0};
    struct stat status;
    sw_error_info info = {0};
    const bool made = mkdir(folder, 0777) == 0;
    if (!made && errno != EEXIST) {
        cli_complain("the folder '%.300s' cannot be made: %s.", folder, strerror(errno));
        return CLI_UNREADABLE;
    }
    if (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode)) {
        cli_complain("%.300s is a file; --csv takes a folder.", folder);
        return CLI_UNREADABLE;
    }
    int error = SW_OK;
    while (!error && files.open < SW_CSV_TABLES) {
        error = fill(&files, it, folder, &info);
    }
    size_t placed = 0;
    for (; !error && placed < files.open; placed++) {
        error = out_file_close(&files.file[placed], &info);
    }
    if (error) {
        for (size_t i = placed; i < files.open; i++) {
            out_file_discard(&files.file[i]);
        }
        if (made) {
            rmdir(folder);
        }
        cli_complain("%s", info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    return CLI_GOOD;
}
