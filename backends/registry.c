/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The only place that names backends. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "backends/backend.h"
#include "backends/local/path.h"
#include "base/text.h"

extern const struct backend backend_file, backend_null;
#ifdef HAVE_LIBNFS
extern const struct backend backend_nfs;
#endif
#ifdef HAVE_LIBISCSI
extern const struct backend backend_iscsi;
#endif
#ifdef HAVE_LIBAIO
extern const struct backend backend_block;
#endif

static const struct backend *const all[] = {
#ifdef HAVE_LIBNFS
    &backend_nfs,
#endif
#ifdef HAVE_LIBISCSI
    &backend_iscsi,
#endif
#ifdef HAVE_LIBAIO
    &backend_block,
#endif
    &backend_file,
    &backend_null,
    NULL
};

/* Every backend that this source can have, so that a word with a known scheme gets a true answer in a smaller build. */
static const struct { const char *name, *library; } known[] = {
    {"nfs", "libnfs"}, {"iscsi", "libiscsi"}, {"block", "libaio"}, {"file", ""}, {"null", ""}
};

const struct backend *const *backend_all(void) {
    return all;
}

static const char *name_for(const struct url *url) {
    if (!strcmp(url->scheme, "/") || !strcmp(url->scheme, "file"))
        return path_top_is(url->path, "dev") ? "block" : "file";
    return strcmp(url->scheme, "block") ? url->scheme : ""; /* a backend's name, but no scheme */
}

const struct backend *backend_for_url(const struct url *url, struct err *err) {
    const char *name = name_for(url);
    for (size_t i = 0; all[i]; i++)
        if (!strcmp(all[i]->name, name)) return all[i];
    char text[200];
    text_safe(text, sizeof text, url->text, strlen(url->text));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name)) continue;
        err_set(err, STATUS_USAGE, "%s: this samedisk was built without %s, so it has no %s targets; "
                "build it again with %s installed", text, known[i].library, name, known[i].library);
        return NULL;
    }
    err_set(err, STATUS_USAGE, "%s: unknown scheme \"%s\"; targets are nfs://HOST/EXPORT/PATH, iscsi://HOST/IQN/LUN, "
            "/dev/NAME, /PATH, file:/PATH and null:", text, url->scheme);
    return NULL;
}
