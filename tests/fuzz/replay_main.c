/*
 * Feeds every file of the folders and files named on the command line to a fuzz target,
 * so that a corpus is a regression test wherever there is a C compiler.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long replayed;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }

    /* The buffer is exactly as long as the input, so that a sanitizer or valgrind sees
     * the first byte that is read beyond it. */
    uint8_t *data = NULL;
    int result = -1;
    if (fseek(file, 0, SEEK_END) != 0)
        goto out;
    const long size = ftell(file);
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0)
        goto out;
    data = malloc(size > 0 ? (size_t)size : 1);
    if (!data || fread(data, 1, (size_t)size, file) != (size_t)size)
        goto out;

    /* The name is printed first: it is the last line there is when the target dies. */
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    replayed++;
    result = 0;

out:
    if (result != 0)
        fprintf(stderr, "%s: cannot be read\n", path);
    free(data);
    fclose(file);
    return result;
}

static int replay(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    if (!S_ISDIR(info.st_mode))
        return replay_file(path);

    struct dirent **entries;
    const int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    int result = 0;
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            char child[4096];
            snprintf(child, sizeof child, "%s/%s", path, entries[i]->d_name);
            if (replay(child) != 0)
                result = -1;
        }
        free(entries[i]);
    }
    free(entries);
    return result;
}

int main(int argc, char **argv)
{
    int result = 0;
    for (int i = 1; i < argc; i++) {
        if (replay(argv[i]) != 0)
            result = 1;
    }
    /* The targets must survive the empty input as well; libFuzzer starts with it. */
    const uint8_t nothing[1] = {0};
    LLVMFuzzerTestOneInput(nothing, 0);
    printf("%lu inputs replayed\n", replayed);
    return result;
}
