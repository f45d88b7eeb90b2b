/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The contract over real servers, which a lab script has started. CONTRACT_NFS_URL and CONTRACT_ISCSI_URL are lists
 * of URLs with blanks between them. An NFS URL names a file that does not exist and is created and removed; an iSCSI
 * URL names a LUN of at least 64 MiB that may be overwritten. Without any: skipped (exit status 77). With
 * CONTRACT_READAHEAD set to anything, a client-side readahead lies over each of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/readahead.h"
#include "tests/contract/contract.h"
#include "tests/contract/filtered.h"

static int run_filtered(const struct contract_subject *s) {
    struct contract_subject below = *s;
    struct object keeper;
    char name[300];
    snprintf(name, sizeof name, "readahead over %.250s", s->url);
    if (s->create_size) object_open(&keeper, s, OPEN_CREATE, NULL);
    below.create_size = 0;
    int failures = filtered_run(name, &backend_readahead, &below);
    if (s->create_size) object_close(&keeper);
    return failures;
}

static int run_list(const char *variable, uint64_t create_size, unsigned *n) {
    const char *list = getenv(variable);
    char *copy, *save = NULL;
    int failures = 0;
    if (!list || !(copy = strdup(list))) return 0;
    for (char *url = strtok_r(copy, " \n", &save); url; url = strtok_r(NULL, " \n", &save)) {
        struct contract_subject s = {.name = url, .url = url, .create_size = create_size, .ios = 1000};
        failures += getenv("CONTRACT_READAHEAD") ? run_filtered(&s) : contract_run(&s);
        ++*n;
    }
    free(copy);
    return failures;
}

int main(void) {
    unsigned n = 0;
    int failures = run_list("CONTRACT_NFS_URL", 64u << 20, &n) + run_list("CONTRACT_ISCSI_URL", 0, &n);
    if (!n) {
        printf("# skipped: neither CONTRACT_NFS_URL nor CONTRACT_ISCSI_URL is set\n");
        return 77;
    }
    return failures != 0;
}
