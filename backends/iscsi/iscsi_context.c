/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The native engine's memory: a context's beginning and end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "backends/iscsi/iscsi_native.h"
#include "backends/net/sock.h"

enum { READ_16 = 0x88, WRITE_16 = 0x8a };

static unsigned power_of_two(unsigned n) {
    unsigned p = 1;
    while (p < n) p <<= 1;
    return p;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static void template(uint8_t bhs[ISCSI_BHS], uint64_t lun, unsigned direction, uint8_t opcode) {
    memset(bhs, 0, ISCSI_BHS);
    bhs[0] = ISCSI_COMMAND;
    bhs[AT_FLAGS] = (uint8_t)(ISCSI_FINAL | ISCSI_SIMPLE | direction);
    iscsiw_put64(bhs + AT_LUN, lun);
    bhs[AT_CDB] = opcode;
}

static void agree(struct context *c, const struct iscsibe_terms *t) {
    const uint32_t *v = t->value;
    c->header_digest = c->in.header_digest = v[KEY_HEADER_DIGEST] != 0;
    c->data_digest = c->in.data_digest = v[KEY_DATA_DIGEST] != 0;
    c->plain = !c->header_digest && !c->data_digest;
    c->in.max_data = v[KEY_MAX_RECV];
    c->segment_max = t->target_max_recv & ~3u; /* only the last PDU of a sequence needs padding */
    c->immediate_max = v[KEY_IMMEDIATE_DATA] ? least(v[KEY_FIRST_BURST], c->segment_max) : 0;
    c->unsolicited_max = v[KEY_INITIAL_R2T] ? 0 : v[KEY_FIRST_BURST];
    c->burst_max = v[KEY_MAX_BURST];
    c->r2t_max = least(v[KEY_MAX_R2T], NATIVE_R2T_MAX);
}

static int allocate(struct context *c) {
    unsigned jobs = power_of_two(c->depth * (c->r2t_max + 1));
    c->slot_mask = power_of_two(c->depth + 1) - 1; /* with that of the questions; those behind it are never out */
    c->job_mask = jobs - 1;
    c->slots = calloc(c->slot_mask + 1, sizeof *c->slots);
    c->done = calloc(c->depth, sizeof *c->done);
    c->starts = calloc(c->depth, sizeof *c->starts);
    c->again = calloc(c->depth, sizeof *c->again);
    c->jobs = calloc(jobs, sizeof *c->jobs);
    c->nop = calloc(NATIVE_NOPS, sizeof *c->nop);
    c->in_bytes = malloc(NATIVE_IN_SIZE + ISCSI_HEADER_MAX);
    c->out.bytes = malloc(NATIVE_OUT_BYTES);
    c->check_request.buf = calloc(1, NATIVE_LARGE);
    if (!c->check_request.buf) return -1;
    if (!c->slots || !c->done || !c->starts || !c->again || !c->jobs || !c->nop || !c->in_bytes || !c->out.bytes)
        return -1;
    memset(c->in_bytes, 0, NATIVE_IN_SIZE + ISCSI_HEADER_MAX); /* pages are there before the clock starts */
    memset(c->out.bytes, 0, NATIVE_OUT_BYTES);
    for (unsigned i = 0; i <= c->slot_mask; i++) c->slots[i].itt = i;
    return 0;
}

struct context *iscsibe_native_new(const struct native_how *session, const struct attach_how *how, struct err *err) {
    struct context *c = calloc(1, sizeof *c);
    unsigned depth = how->depth ? how->depth : 1;

    if (!c || depth > 1u << 20) goto no_memory;
    c->fd = -1;
    c->depth = depth;
    agree(c, session->terms);
    if (allocate(c) != 0) goto no_memory;
    template(c->read_bhs, session->lun, ISCSI_READ, READ_16);
    template(c->write_bhs, session->lun, ISCSI_WRITE, WRITE_16);
    template(c->sync_bhs, session->lun, 0, session->sync_op);
    /* so long that its answers never look like a whole READ's, to which they must not be taken */
    c->check_request.len = NATIVE_LARGE;
    c->check_request.op = IO_READ;
    c->check_request.slot = c->depth;
    c->check.unit = session->unit;
    c->check.writes = how->write;
    if (how->write && c->check.unit) iscsibe_recheck_seal(&c->check, &how->seal);
    c->check.doubts = atomic_load(&session->unit->doubts);
    c->block_shift = (unsigned)__builtin_ctz(session->block);
    c->block_mask = session->block - 1;
    c->cmd_sn = session->cmd_sn;
    c->max_cmd_sn = session->max_cmd_sn;
    c->window_at_login = session->max_cmd_sn - session->cmd_sn + 1;
    c->portal = session->portal;
    c->exp_stat_sn = session->exp_stat_sn;
    c->tend = tcp_settings_to_tend(session->tcp);
    c->stable = session->stable; /* durable when it is answered: nothing more is asked for */
    c->sync_op = session->sync_op;
    c->fua = session->dpofua && !c->stable;
    c->sync_behind = !session->dpofua && !c->stable && c->sync_op;
    c->deliver = session->deliver;
    c->wait = session->wait;
    c->timeout = session->timeout;
    c->ascq_words = session->ascq_words;
    c->clock = how->clock;
    c->kinds = how->kinds;
    c->may_write = how->write;
    c->batch = 1; /* the slots' 0 is none that `out` ever had */
    c->wall = c->asked = sock_now();
    return c;
no_memory:
    err_set(err, STATUS_TARGET, "no memory for %u requests", depth);
    iscsibe_native_free(c);
    return NULL;
}

void iscsibe_native_free(struct context *c) {
    if (!c) return;
    if (c->fd >= 0) close(c->fd);
    free(c->slots);
    free(c->done);
    free(c->starts);
    free(c->again);
    free(c->jobs);
    free(c->nop);
    free(c->in_bytes);
    free(c->check_request.buf);
    free(c->out.bytes);
    free(c);
}

int iscsibe_native_start(const struct native_how *session, const struct attach_how *how, struct context **out,
                         struct err *err) {
    const struct timeval tick = { .tv_usec = NATIVE_RECV_NS / NS_PER_US };
    struct context *c = iscsibe_native_new(session, how, err);

    *out = NULL;
    if (!c) {
        close(session->fd);
        return -1;
    }
    c->fd = session->fd;
    if (setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick) != 0) {
        err_set(err, STATUS_TARGET, "SO_RCVTIMEO: %s", strerror(errno));
        iscsibe_native_free(c);
        return -1;
    }
    *out = c;
    return 0;
}

static void lose_one(struct context *c, struct native_slot *s, int64_t t, int error, const char *kind,
                     const char *text) {
    if (s->out && s->request->op != IO_FLUSH && !s->syncing) c->counts.fruitless++;
    iscsibe_done_failed(c, s, t, error, kind, text);
}

void iscsibe_native_lose(struct context *c, int error, const char *kind, const char *text) {
    if (c->lost) return;
    snprintf(c->lost_text, sizeof c->lost_text, "%s%.160s%s%s", c->portal ? "portal " : "", c->portal ? c->portal : "",
             c->portal ? ": " : "", text);
    text = c->lost_text;
    c->lost = true;
    c->lost_error = error;
    if (c->fd >= 0) close(c->fd); /* neither a late reply nor what is unsent can touch a buffer any more */
    c->fd = -1;
    c->out.n = c->again_n = c->job_n = c->nop_n = 0;
    c->logout = c->check_due = false;
    c->slots[c->depth].out = false;
    kinds_lost(c->kinds, kind, text);  /* the reason is told also when nothing is out */
    if (c->held) iscsibe_done_held(c); /* these were answered */
    int64_t t = clock_now(c->clock);
    for (unsigned i = 0; i < c->depth && c->lent; i++)
        if (c->slots[i].request) lose_one(c, &c->slots[i], t, error, kind, text);
}
