/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a fuzz target over the files given as arguments, where there is no libFuzzer: the corpus as a plain test. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Exactly as long as the file, so that the sanitizers see the first byte that is read beyond it. */
static int run_file(const char *path) {
    FILE *in = fopen(path, "rb");
    uint8_t *data = NULL;
    long size;
    int rc = -1;

    if (!in || fseek(in, 0, SEEK_END) != 0 || (size = ftell(in)) < 0 || fseek(in, 0, SEEK_SET) != 0) goto out;
    data = malloc(size > 0 ? (size_t)size : 1);
    if (!data || fread(data, 1, (size_t)size, in) != (size_t)size) goto out;
    LLVMFuzzerTestOneInput(data, (size_t)size);
    rc = 0;
out:
    if (rc != 0) perror(path);
    free(data);
    if (in) fclose(in);
    return rc;
}

int main(int argc, char **argv) {
    int failed = 0;

    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE ...\n", argv[0]);
        return 1;
    }
    for (int i = 1; i < argc; i++) failed |= run_file(argv[i]) != 0;
    printf("%d inputs\n", argc - 1);
    return failed;
}
