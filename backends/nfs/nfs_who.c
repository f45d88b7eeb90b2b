/* SPDX-License-Identifier: GPL-2.0-or-later */
/* As whom the server is asked: AUTH_SYS with a uid, a gid and up to 16 further groups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/nfs/nfs.h"
#include "base/text.h"

#define ID_MAX 0xffffffffull

int nfsbe_gids_fill(struct nfsbe_server *server, const char *text, struct err *err) {
    char safe[200];
    server->gid = getegid();
    server->n_groups = 0;
    for (unsigned n = 0; text; n++) {
        char *end;
        unsigned long long id = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : ID_MAX + 1;
        if (id > ID_MAX || (*end && *end != ','))
            return err_set(err, STATUS_USAGE, "gid=: a number of at most %llu is wanted at `%s`; gid=100,20,30 is group "
                           "100 and two more", ID_MAX, text_safe(safe, sizeof safe, text, strlen(text)));
        if (n > NFSBE_GROUPS_MAX)
            return err_set(err, STATUS_USAGE, "gid=: the group and at most %u more; AUTH_SYS has no room for others",
                           NFSBE_GROUPS_MAX);
        if (n == 0) server->gid = (uint32_t)id;
        else server->groups[server->n_groups++] = (uint32_t)id;
        text = *end ? end + 1 : NULL;
    }
    return 0;
}

const char *nfsbe_who_words(const struct nfsbe_server *server, char *buf, size_t len) {
    size_t at = (size_t)snprintf(buf, len, "uid %u gid %u", server->uid, server->gid);
    for (unsigned i = 0; i < server->n_groups && at < len; i++)
        at += (size_t)snprintf(buf + at, len - at, "%s%u", i ? "," : " groups ", server->groups[i]);
    return buf;
}
