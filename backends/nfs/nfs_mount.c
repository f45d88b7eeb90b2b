/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_mount.h"

#include <stdio.h>

#include "backends/nfs/nfs_calls.h"

enum { MNT = 1, UMNT = 3, EXPORT = 5 };
#define PATH_MAX_WIRE 1024u   /* MNTPATHLEN */
#define NAME_MAX_WIRE 4096u   /* of a client or group that an export is for: MNTNAMLEN is 255, and servers do not keep to it */
#define FLAVORS_MOST 1024u
#define AUTH_NONE 0u
#define AUTH_SYS 1u

static void put_path(struct xdr_out *x, const void *from) {
    xdr_put_text(x, from);
}

static void take_mnt(struct xdr_in *x, void *to) {
    struct nfsbe_mnt *m = to;
    nfsbe_get_fh(x, &m->root);
    uint32_t n = xdr_get32(x);
    if (n > FLAVORS_MOST) x->bad = true;
    m->n = 0;
    for (uint32_t i = 0; i < n && !x->bad; i++) {
        uint32_t flavor = xdr_get32(x);
        if (m->n < NFSBE_FLAVORS_MAX) m->flavor[m->n++] = flavor;
    }
}

int nfsbe_call_mnt(struct nfsbe_conn *conn, const char *export_path, struct nfsbe_mnt *mnt, struct err *err) {
    static const struct nfsbe_procedure mnt_call = { MNT, "MOUNT MNT", put_path, take_mnt };
    return nfsbe_call(conn, &mnt_call, export_path, mnt, err);
}

void nfsbe_call_umnt(struct nfsbe_conn *conn, const char *export_path) {
    struct err none = { .status = STATUS_OK };
    struct xdr_out args;
    struct xdr_in result;
    nfsbe_conn_begin(conn, UMNT, &args);
    xdr_put_text(&args, export_path);
    nfsbe_conn_call(conn, &args, "MOUNT UMNT", &result, &none);
}

/* A list cut short, because there are too many or memory ends, is still of use. */
int nfsbe_call_exports(struct nfsbe_conn *conn, struct nfsbe_exports *exports, struct err *err) {
    struct xdr_out args;
    struct xdr_in x;
    char dir[PATH_MAX_WIRE + 1];
    uint32_t len;

    nfsbe_conn_begin(conn, EXPORT, &args);
    if (nfsbe_conn_call(conn, &args, "MOUNT EXPORT", &x, err) != 0) return -1;
    bool room = true;
    while (xdr_get_bool(&x)) {
        xdr_get_text(&x, PATH_MAX_WIRE, dir);
        while (xdr_get_bool(&x)) xdr_get_opaque(&x, NAME_MAX_WIRE, &len);
        if (x.bad) break;
        room = room && nfsbe_exports_add(exports, dir) == 0;
    }
    return x.bad ? nfsbe_conn_garbled(conn, "MOUNT EXPORT", err) : 0;
}

/* ---- flavours ---- */

bool nfsbe_mnt_takes_sys(const struct nfsbe_mnt *mnt) {
    for (unsigned i = 0; i < mnt->n; i++)
        if (mnt->flavor[i] == AUTH_SYS || mnt->flavor[i] == AUTH_NONE) return true;
    return mnt->n == 0;
}

const char *nfsbe_mnt_flavors(const struct nfsbe_mnt *mnt, char *buf, size_t len) {
    static const struct { uint32_t number; const char *name; } names[] = {
        { AUTH_NONE, "none" },  { AUTH_SYS, "sys" },     { 2, "short" },        { 3, "dh" },
        { 6, "rpcsec_gss" },    { 390003, "krb5" },      { 390004, "krb5i" },   { 390005, "krb5p" },
    };
    size_t at = 0;
    if (len) *buf = '\0';
    for (unsigned i = 0; i < mnt->n && at < len; i++) {
        const char *name = NULL;
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            if (names[k].number == mnt->flavor[i]) name = names[k].name;
        if (name) at += (size_t)snprintf(buf + at, len - at, "%s%s", i ? ", " : "", name);
        else at += (size_t)snprintf(buf + at, len - at, "%sflavour %u", i ? ", " : "", mnt->flavor[i]);
    }
    return buf;
}
