/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The native iSCSI engine's login: keys, CHAP, and whole conversations, without a socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/iscsi/iscsi_hash.h"
#include "backends/iscsi/iscsi_login.h"

static struct err err;

static const struct iscsibe_offer plain_offer = { .immediate_data = true, .max_burst = 1048576, .first_burst = 262144,
                                                  .max_recv = 1048576, .max_r2t = 4 };

/* ---- hashes, CHAP ---- */

static void hashes(void **state) {
    static const struct { const char *text, *md5, *sha256, *sha1, *sha3;
    } v[] = {
        /* RFC 1321; FIPS 180-2; FIPS 202 */
        { "", "d41d8cd98f00b204e9800998ecf8427e", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
          "da39a3ee5e6b4b0d3255bfef95601890afd80709",
          "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a" },
        { "abc", "900150983cd24fb0d6963f7d28e17f72",
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
          "a9993e364706816aba3e25717850c26c9cd0d89d",
          "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532" },
        { "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
          "57edf4a22be3c955ac49da2e2107b67a", "f371bc4a311f2b009eef952dd83ca80e2b60026c8e935592d0f9c308453c813e",
          "50abf5706a150990a08b2c5ea40fa0e585554732",
          "293e5ce4ce54ee71990ab06e511b7ccd62722b1beb414f5ff65c8274e0f5be1d" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "8215ef0796a20bcaaae116d3876c664a",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
          "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
          "41c0dba2a9d6240849100376a8235e2c82e1b9998a999e21db32dd97496d3376" },
    };
    char longer[300];
    uint8_t out[32];
    char hex[2 * 32 + 3];
    (void)state;
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        iscsibe_md5(v[i].text, strlen(v[i].text), out);
        iscsibe_chap_encode(out, 16, hex);
        assert_string_equal(hex + 2, v[i].md5);
        iscsibe_sha256(v[i].text, strlen(v[i].text), out);
        iscsibe_chap_encode(out, 32, hex);
        assert_string_equal(hex + 2, v[i].sha256);
        iscsibe_sha1(v[i].text, strlen(v[i].text), out);
        iscsibe_chap_encode(out, 20, hex);
        assert_string_equal(hex + 2, v[i].sha1);
        iscsibe_sha3_256(v[i].text, strlen(v[i].text), out);
        iscsibe_chap_encode(out, 32, hex);
        assert_string_equal(hex + 2, v[i].sha3);
    }
    memset(longer, 'x', sizeof longer); /* more than one block */
    iscsibe_sha3_256(longer, sizeof longer, out);
    iscsibe_chap_encode(out, 32, hex);
    assert_string_equal(hex + 2, "34ed36d4d71d1a9a582cce5a006d6102d173fd867a27be7b2fe5d854587ddba2");
}

static void chap_response(void **state) {
    /* made with another implementation: hash of id, secret, challenge */
    static const uint8_t challenge[] = { 0x00, 0x01, 0x80, 0xff, 0x10, 0x20 };
    uint8_t out[32];
    char hex[2 * 32 + 3];
    (void)state;
    iscsibe_chap_response(CHAP_MD5, 0x2a, "secret12secret", challenge, sizeof challenge, out);
    iscsibe_chap_encode(out, 16, hex);
    assert_string_equal(hex, "0x95b1a6b2b44a1ad5baa5cb15398ccfa7");
    iscsibe_chap_response(CHAP_SHA256, 0x2a, "secret12secret", challenge, sizeof challenge, out);
    iscsibe_chap_encode(out, 32, hex);
    assert_string_equal(hex, "0xc54be00d0b9aa59aa594ee6ba8e47ce1c1671c92e701b2386d28bce8470eff0f");
    iscsibe_chap_response(CHAP_SHA1, 0x2a, "secret12secret", challenge, sizeof challenge, out);
    iscsibe_chap_encode(out, 20, hex);
    assert_string_equal(hex, "0x9e93c68c61666689a3ab42e11e49509265c5ab98");
    iscsibe_chap_response(CHAP_SHA3_256, 0x2a, "secret12secret", challenge, sizeof challenge, out);
    iscsibe_chap_encode(out, 32, hex);
    assert_string_equal(hex, "0x02625fb81ede7e6a5b9f75dbe4a3dc5b2c4e8cb9b05f599900d8975a8ef75557");
    assert_int_equal(iscsibe_chap_size(CHAP_SHA1), 20);
    assert_int_equal(iscsibe_chap_size(9), 0);
}

static void chap_values(void **state) {
    uint8_t out[8];
    size_t len;
    (void)state;
    assert_true(iscsibe_chap_decode("0x0102fF", out, sizeof out, &len));
    assert_int_equal(len, 3);
    assert_int_equal(out[2], 0xff);
    assert_true(iscsibe_chap_decode("0XabC", out, sizeof out, &len)); /* an odd number of digits */
    assert_int_equal(len, 2);
    assert_int_equal(out[0], 0x0a);
    assert_true(iscsibe_chap_decode("0bAQL/", out, sizeof out, &len));
    assert_int_equal(len, 3);
    assert_memory_equal(out, "\1\2\xff", 3);
    assert_true(iscsibe_chap_decode("0BAQI=", out, sizeof out, &len));
    assert_int_equal(len, 2);
    assert_true(iscsibe_chap_decode("0bAQ==", out, sizeof out, &len));
    assert_int_equal(len, 1);
    static const char *const bad[] = {
        "", "0", "0x", "0b", "12", "x12", "0xzz", "0b*", "0bA=A", "0x112233445566778899"
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(iscsibe_chap_decode(bad[i], out, sizeof out, &len));
}

/* ---- keys ---- */

/* One answer on its own. `value` < 0: refused. */
static void key_case(enum iscsibe_key key, uint32_t offer, const char *name, const char *answer, int64_t value) {
    struct iscsibe_terms t;
    struct iscsibe_text reply = { .len = 0 };
    iscsibe_terms_begin(&t, &plain_offer);
    t.offer[key] = offer;
    int rc = answer ? iscsibe_terms_answer(&t, name, answer, &reply, &err) : 0;
    if (rc == 0) rc = iscsibe_terms_finish(&t, &err);
    if (rc == 0 && value < 0) fail_msg("%s=%s is not refused", name, answer ? answer : "(none)");
    if (rc != 0 && value >= 0) fail_msg("%s=%s: %s", name, answer ? answer : "(none)", err.msg);
    if (rc == 0) assert_int_equal(t.value[key], value);
    if (rc != 0) assert_non_null(strstr(err.msg, name));
    assert_int_equal(reply.len, 0);
}

static void keys(void **state) {
    static const struct { enum iscsibe_key key; const char *name; uint32_t offer; const char *answer; int64_t value;
    } v[] = {
        /* either side's yes */
        { KEY_INITIAL_R2T, "InitialR2T", 0, "No", 0 },
        { KEY_INITIAL_R2T, "InitialR2T", 0, "Yes", 1 },
        { KEY_INITIAL_R2T, "InitialR2T", 1, "No", 1 },
        { KEY_INITIAL_R2T, "InitialR2T", 1, "Yes", 1 },
        { KEY_INITIAL_R2T, "InitialR2T", 0, NULL, 1 },
        { KEY_INITIAL_R2T, "InitialR2T", 0, "yes", -1 },
        { KEY_INITIAL_R2T, "InitialR2T", 0, "", -1 },
        { KEY_INITIAL_R2T, "InitialR2T", 0, "Reject", -1 },
        { KEY_PDU_IN_ORDER, "DataPDUInOrder", 1, "No", 1 },
        { KEY_SEQUENCE_IN_ORDER, "DataSequenceInOrder", 1, "Yes", 1 },
        /* both sides' yes */
        { KEY_IMMEDIATE_DATA, "ImmediateData", 1, "Yes", 1 },
        { KEY_IMMEDIATE_DATA, "ImmediateData", 1, "No", 0 },
        { KEY_IMMEDIATE_DATA, "ImmediateData", 0, "Yes", 0 },
        { KEY_IMMEDIATE_DATA, "ImmediateData", 0, "No", 0 },
        { KEY_IMMEDIATE_DATA, "ImmediateData", 1, NULL, 1 },
        { KEY_IMMEDIATE_DATA, "ImmediateData", 0, NULL, 0 },
        /* the smaller */
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, "262144", 262144 },
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, "16777215", 1048576 },
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, "0x40000", 262144 },
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, "0XfF00", 65280 },
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, NULL, 262144 },
        { KEY_MAX_BURST, "MaxBurstLength", 4096, NULL, 4096 },
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, "511", -1 },
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, "16777216", -1 },
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, "99999999999999999999999", -1 },
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, "-1", -1 },
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, "4k", -1 },
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, "0x", -1 },
        { KEY_MAX_BURST, "MaxBurstLength", 1048576, "Irrelevant", 262144 },
        { KEY_FIRST_BURST, "FirstBurstLength", 262144, "65536", 65536 },
        { KEY_FIRST_BURST, "FirstBurstLength", 262144, NULL, 65536 },
        { KEY_FIRST_BURST, "FirstBurstLength", 1 << 20, "16777215", 262144 }, /* not above MaxBurstLength's default */
        { KEY_MAX_R2T, "MaxOutstandingR2T", 4, "1", 1 },
        { KEY_MAX_R2T, "MaxOutstandingR2T", 4, "65535", 4 },
        { KEY_MAX_R2T, "MaxOutstandingR2T", 4, "0", -1 },
        { KEY_MAX_R2T, "MaxOutstandingR2T", 4, NULL, 1 },
        { KEY_MAX_CONNECTIONS, "MaxConnections", 1, "8", 1 },
        { KEY_RECOVERY_LEVEL, "ErrorRecoveryLevel", 0, "2", 0 },
        { KEY_RECOVERY_LEVEL, "ErrorRecoveryLevel", 0, "3", -1 },
        { KEY_TIME2RETAIN, "DefaultTime2Retain", 0, "20", 0 },
        /* the larger */
        { KEY_TIME2WAIT, "DefaultTime2Wait", 2, "3", 3 },
        { KEY_TIME2WAIT, "DefaultTime2Wait", 2, "0", 2 },
        { KEY_TIME2WAIT, "DefaultTime2Wait", 2, "3601", -1 },
        /* each side's own */
        { KEY_MAX_RECV, "MaxRecvDataSegmentLength", 4096, "8192", 4096 },
        { KEY_MAX_RECV, "MaxRecvDataSegmentLength", 4096, "0", -1 },
        /* one of what was offered */
        { KEY_HEADER_DIGEST, "HeaderDigest", 0, "None", 0 },
        { KEY_HEADER_DIGEST, "HeaderDigest", 1, "CRC32C", 1 },
        { KEY_HEADER_DIGEST, "HeaderDigest", 0, "CRC32C", -1 },
        { KEY_HEADER_DIGEST, "HeaderDigest", 1, "None", -1 },
        { KEY_HEADER_DIGEST, "HeaderDigest", 1, NULL, -1 },
        { KEY_HEADER_DIGEST, "HeaderDigest", 0, NULL, 0 },
        { KEY_DATA_DIGEST, "DataDigest", 1, "NotUnderstood", -1 },
        { KEY_DATA_DIGEST, "DataDigest", 1, "CRC32C", 1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
        key_case(v[i].key, v[i].offer, v[i].name, v[i].answer, v[i].value);
}

static void keys_of_the_target(void **state) {
    struct iscsibe_terms t;
    struct iscsibe_text reply = { .len = 0 };
    struct kv kv = { 0 };
    (void)state;
    iscsibe_terms_begin(&t, &plain_offer);
    assert_int_equal(t.target_max_recv, 8192);
    assert_int_equal(iscsibe_terms_answer(&t, "MaxRecvDataSegmentLength", "131072", &reply, &err), 0);
    assert_int_equal(t.target_max_recv, 131072);
    assert_int_equal(iscsibe_terms_answer(&t, "TargetAlias", "disk\033[2J", &reply, &err), 0);
    assert_int_equal(reply.len, 0);
    assert_int_equal(iscsibe_terms_answer(&t, "IFMarker", "No", &reply, &err), 0);
    assert_string_equal(reply.bytes, "IFMarker=Reject");
    reply.len = 0;
    assert_int_equal(iscsibe_terms_answer(&t, "X-org.example.key", "1", &reply, &err), 0);
    assert_string_equal(reply.bytes, "X-org.example.key=NotUnderstood");
    reply.len = 0;
    assert_int_equal(iscsibe_terms_answer(&t, "X-org.example.key", "NotUnderstood", &reply, &err), 0);
    assert_int_equal(reply.len, 0);
    assert_int_equal(iscsibe_terms_answer(&t, "MaxBurstLength", "8192", &reply, &err), 0);
    assert_int_equal(iscsibe_terms_answer(&t, "MaxBurstLength", "4096", &reply, &err), -1);
    assert_int_equal(iscsibe_terms_finish(&t, &err), 0);
    assert_int_equal(t.value[KEY_FIRST_BURST], 8192);
    iscsibe_terms_facts(&t, &kv);
    assert_int_equal(kv_get_uint(&kv, "max_burst", 0), 8192);
    assert_int_equal(kv_get_uint(&kv, "target_max_recv", 0), 131072);
    assert_string_equal(kv_find(&kv, "header_digest")->text, "none");
    const char *answered = kv_find(&kv, "login_answered")->text;
    assert_non_null(strstr(answered, "MaxBurstLength=8192"));
    assert_null(strchr(answered, '\033'));
    kv_free(&kv);
}

/* ---- conversations ---- */

static const struct iscsibe_credentials nobody = { "iqn.a:me", "iqn.b:disk", "", "", "", "" };
static const struct iscsibe_credentials one_way = { "iqn.a:me", "iqn.b:disk", "joe", "open sesame", "", "" };
static const struct iscsibe_credentials mutual = { "iqn.a:me",    "iqn.b:disk", "joe",
                                                   "open sesame", "tom",        "barley and rye" };
static const uint8_t isid[6] = { 0x80, 1, 2, 3, 0, 7 };
static const uint8_t challenge[CHALLENGE_SIZE] = { 9, 8, 7, 6, 5, 4, 3, 2, 1 };

static struct iscsibe_talk talk;

static void begin(const struct iscsibe_credentials *who) {
    iscsibe_talk_begin(&talk, who, &plain_offer, isid, challenge, 77);
}

/* Is KEY=VALUE in what we are about to send? */
static bool says(const char *pair) {
    const char *p = (const char *)talk.out + ISCSI_BHS, *end = p + iscsiw_get24(talk.out + AT_LENGTH);
    for (; p < end; p += strlen(p) + 1)
        if (strcmp(p, pair) == 0) return true;
    return false;
}

static unsigned flags(void) {
    return talk.out[AT_FLAGS];
}

static uint32_t stat_sn; /* of the last answer */

/* An answer: pairs with '|' between them. */
static enum iscsibe_talk_next hear(unsigned answer_flags, unsigned status, const char *pairs) {
    uint8_t bhs[ISCSI_BHS] = { ISCSI_LOGIN_RESPONSE, (uint8_t)answer_flags };
    char text[4096];
    size_t len = strlen(pairs) ? strlen(pairs) + 1 : 0;
    assert_true(len < sizeof text);
    memcpy(text, pairs, len);
    for (size_t i = 0; i < len; i++)
        if (text[i] == '|') text[i] = '\0';
    iscsiw_put24(bhs + AT_LENGTH, (uint32_t)len);
    iscsiw_put32(bhs + AT_ITT, 1);
    iscsiw_put16(bhs + 14, 0x55);
    iscsiw_put32(bhs + AT_STAT_SN, ++stat_sn);
    iscsiw_put32(bhs + AT_EXP_CMD_SN, 1);
    iscsiw_put32(bhs + AT_MAX_CMD_SN, 64);
    iscsiw_put16(bhs + 36, status);
    enum iscsibe_talk_next next = iscsibe_talk_answer(&talk, bhs, (const uint8_t *)text, len, &err);
    if (next == TALK_FAILED) {
        assert_int_equal(err.status, STATUS_TARGET);
        assert_null(strstr(err.msg, "sesame"));
        assert_null(strstr(err.msg, "barley"));
    }
    return next;
}

enum { TO_OPERATIONAL = ISCSI_TRANSIT | 1, SECURITY = 0, OPERATIONAL = 1 << 2, TO_FULL = ISCSI_TRANSIT | 1 << 2 | 3 };

static void without_chap(void **state) {
    (void)state;
    begin(&nobody);
    assert_int_equal(talk.out[0], 0x43);
    assert_memory_equal(talk.out + 8, isid, 6);
    assert_int_equal(talk.out_len % 4, 0);
    assert_true(says("InitiatorName=iqn.a:me") && says("TargetName=iqn.b:disk") && says("SessionType=Normal"));
    assert_true(says("AuthMethod=None"));
    assert_int_equal(flags(), TO_OPERATIONAL);
    assert_int_equal(hear(TO_OPERATIONAL, 0, "TargetPortalGroupTag=1|AuthMethod=None"), TALK_SEND);
    assert_int_equal(flags(), TO_FULL);
    static const char *const all[] = { "HeaderDigest=None", "DataDigest=None", "InitialR2T=No", "ImmediateData=Yes",
        "MaxBurstLength=1048576", "FirstBurstLength=262144", "MaxRecvDataSegmentLength=1048576", "MaxOutstandingR2T=4",
        "MaxConnections=1", "ErrorRecoveryLevel=0", "DataPDUInOrder=Yes", "DataSequenceInOrder=Yes" };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) assert_true(says(all[i]));
    assert_false(says("InitiatorName=iqn.a:me"));
    assert_int_equal(hear(OPERATIONAL, 0, "InitialR2T=Yes|IFMarker=No|MaxBurstLength=65536"), TALK_SEND);
    assert_int_equal(flags(), TO_FULL); /* the target had something to say, and now it has its answer */
    assert_true(says("IFMarker=Reject"));
    assert_int_equal(iscsiw_get32(talk.out + AT_EXP_STAT_SN), stat_sn + 1);
    assert_int_equal(hear(TO_FULL, 0, ""), TALK_DONE);
    assert_int_equal(talk.exp_stat_sn, stat_sn + 1);
    assert_int_equal(talk.terms.value[KEY_INITIAL_R2T], 1);
    assert_int_equal(talk.terms.value[KEY_MAX_BURST], 65536);
    assert_int_equal(talk.max_cmd_sn, 64);
    assert_int_equal(talk.tsih, 0x55);
    assert_string_equal(talk.auth, "None");
    assert_string_equal(talk.portal_group, "1");
}

static void response_text(unsigned algorithm, uint8_t id, const char *secret, const uint8_t *what, size_t len,
                          char *out) {
    uint8_t response[CHAP_RESPONSE_MAX];
    iscsibe_chap_response(algorithm, id, secret, what, len, response);
    iscsibe_chap_encode(response, iscsibe_chap_size(algorithm), out);
}

static void to_challenge(const struct iscsibe_credentials *who, unsigned algorithm) {
    char text[100], pair[120];
    begin(who);
    assert_true(says(*who->target_user ? "AuthMethod=CHAP" : "AuthMethod=CHAP,None"));
    assert_int_equal(flags(), SECURITY);
    assert_int_equal(hear(SECURITY, 0, "AuthMethod=CHAP"), TALK_SEND);
    assert_true(says("CHAP_A=5,7,8,6"));
    assert_int_equal(flags(), SECURITY);
    snprintf(text, sizeof text, "CHAP_A=%u|CHAP_I=200|CHAP_C=0x0102030405", algorithm);
    assert_int_equal(hear(SECURITY, 0, text), TALK_SEND);
    assert_true(says("CHAP_N=joe"));
    response_text(algorithm, 200, "open sesame", (const uint8_t *)"\1\2\3\4\5", 5, text);
    snprintf(pair, sizeof pair, "CHAP_R=%s", text);
    assert_true(says(pair));
    assert_int_equal(flags(), TO_OPERATIONAL);
}

static void chap_one_way(void **state) {
    static const unsigned algorithms[] = { CHAP_MD5, CHAP_SHA256 };
    (void)state;
    for (int i = 0; i < 2; i++) {
        to_challenge(&one_way, algorithms[i]);
        assert_false(says("CHAP_I=77"));
        assert_int_equal(hear(SECURITY, 0, ""), TALK_SEND); /* a target that takes one round more */
        assert_int_equal(flags(), TO_OPERATIONAL);
        assert_int_equal(hear(TO_OPERATIONAL, 0, ""), TALK_SEND);
        assert_true(says("MaxConnections=1"));
        assert_int_equal(hear(TO_FULL, 0, ""), TALK_DONE);
        assert_string_equal(talk.auth, i ? "CHAP SHA-256" : "CHAP MD5");
        assert_null(strstr(talk.terms.answers, "CHAP"));
    }
}

/* `secret`, `name`: what the target proves itself with. */
static enum iscsibe_talk_next mutual_case(unsigned algorithm, const char *name, const char *secret) {
    char text[100], answer[200];
    to_challenge(&mutual, algorithm);
    assert_true(says("CHAP_I=77"));
    assert_true(says("CHAP_C=0x09080706050403020100000000000000"));
    response_text(algorithm, 77, secret, challenge, sizeof challenge, text);
    snprintf(answer, sizeof answer, "CHAP_N=%s|CHAP_R=%s", name, text);
    return hear(TO_OPERATIONAL, 0, answer);
}

static void chap_mutual(void **state) {
    (void)state;
    for (unsigned algorithm = CHAP_MD5; algorithm <= CHAP_SHA256; algorithm += 2) {
        assert_int_equal(mutual_case(algorithm, "tom", "barley and rye"), TALK_SEND);
        assert_int_equal(hear(TO_FULL, 0, ""), TALK_DONE);
        assert_non_null(strstr(talk.auth, "mutual"));
        assert_int_equal(mutual_case(algorithm, "tom", "barley and oat"), TALK_FAILED);
        assert_non_null(strstr(err.msg, "not who it should be"));
        assert_int_equal(mutual_case(algorithm, "tim", "barley and rye"), TALK_FAILED);
    }
    to_challenge(&mutual, CHAP_MD5);
    assert_int_equal(hear(TO_OPERATIONAL, 0, ""), TALK_FAILED); /* no proof at all */
    assert_non_null(strstr(err.msg, "does not prove"));
    to_challenge(&mutual, CHAP_MD5);
    assert_int_equal(hear(TO_OPERATIONAL, 0, "CHAP_N=tom|CHAP_R=0x00"), TALK_FAILED);
    begin(&mutual);
    assert_int_equal(hear(SECURITY, 0, "AuthMethod=None"), TALK_FAILED); /* nor may it go without */
    begin(&mutual);
    assert_int_equal(hear(SECURITY, 0, "AuthMethod=CHAP"), TALK_SEND);
    assert_int_equal(hear(SECURITY, 0, "CHAP_A=5|CHAP_I=1|CHAP_C=0x09080706050403020100000000000000"), TALK_FAILED);
    assert_non_null(strstr(err.msg, "our own"));
}

/* All algorithms, through a whole login. */
static void chap_algorithms(void **state) {
    static const struct { unsigned number; const char *auth; } v[] = {
        { 5, "CHAP MD5" }, { 6, "CHAP SHA-1" }, { 7, "CHAP SHA-256" }, { 8, "CHAP SHA3-256" } };
    static const uint8_t theirs[] = { 1, 2, 3, 4, 5 };
    char pair[120] = "CHAP_R=";
    (void)state;
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        to_challenge(&one_way, v[i].number);
        response_text(v[i].number, 200, "open sesame", theirs, sizeof theirs, pair + 7);
        assert_true(says(pair));
        assert_int_equal(hear(TO_OPERATIONAL, 0, ""), TALK_SEND);
        assert_int_equal(hear(TO_FULL, 0, ""), TALK_DONE);
        assert_string_equal(talk.auth, v[i].auth);
    }
}

static void to_operational(void) {
    begin(&nobody);
    assert_int_equal(hear(TO_OPERATIONAL, 0, "AuthMethod=None"), TALK_SEND);
}

/* A target that requires digests: whichever way it says so, the error names the keys. */
static void digests_required(void **state) {
    static const struct { unsigned status; const char *answer, *there, *not_there; } v[] = {
        { 0x0200, "HeaderDigest=Reject", "set header_digest=crc32c", "data_digest" },
        { 0x0000, "HeaderDigest=CRC32C|DataDigest=None", "set header_digest=crc32c", "data_digest" },
        { 0x0000, "HeaderDigest=None|DataDigest=CRC32C", "set data_digest=crc32c", "header_digest" },
        { 0x0200, "HeaderDigest=CRC32C,None|DataDigest=Reject", "header_digest=crc32c and data_digest=crc32c", "offered" },
        { 0x0200, "", "not offered: header_digest=crc32c data_digest=crc32c", "set " },
        { 0x0203, "", "no such target", "set " },
    };
    (void)state;
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        to_operational();
        assert_int_equal(hear(v[i].status ? 0 : TO_FULL, v[i].status, v[i].answer), TALK_FAILED);
        assert_non_null(strstr(err.msg, v[i].there));
        assert_null(strstr(err.msg, v[i].not_there));
    }
}

static void discovery_session(void **state) {
    static const struct iscsibe_credentials asker = { "iqn.a:me", "", "joe", "open sesame", "tom", "barley and rye" };
    (void)state;
    begin(&asker);
    assert_true(says("SessionType=Discovery") && says("AuthMethod=CHAP,None"));
    assert_false(says("TargetName="));
    assert_int_equal(hear(SECURITY, 0, "AuthMethod=None"), TALK_SEND); /* of a list of names no proof is asked for */
    assert_int_equal(hear(TO_OPERATIONAL, 0, ""), TALK_SEND);
    assert_true(says("HeaderDigest=None") && says("MaxRecvDataSegmentLength=1048576"));
    assert_false(says("MaxBurstLength=1048576"));
    assert_int_equal(hear(TO_FULL, 0, ""), TALK_DONE);
}

/* PDUs that are none of a login, which are the target's to send at any time, or never. */
static void other_pdus(void **state) {
    static const struct { uint8_t opcode; const char *words; } v[] = {
        { ISCSI_DATA_IN, "no login response" }, { ISCSI_R2T, "no login response" }, { ISCSI_REJECT, "rejects" },
        { ISCSI_ASYNC, "ends the connection" }, { ISCSI_NOP_IN, "no login response" } };
    (void)state;
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        uint8_t bhs[ISCSI_BHS] = { v[i].opcode, ISCSI_FINAL };
        iscsiw_put32(bhs + AT_ITT, 1);
        begin(&nobody);
        assert_int_equal(iscsibe_talk_answer(&talk, bhs, NULL, 0, &err), TALK_FAILED);
        assert_non_null(strstr(err.msg, v[i].words));
    }
    begin(&nobody);
    assert_int_equal(hear(SECURITY, 0, "AuthMethod=CHAP"), TALK_FAILED); /* who does not take no for an answer */
    assert_int_equal(talk.status, LOGIN_WANTS_CHAP);
}

static void chap_nonsense(void **state) {
    static const char *const bad[] = { "",
                                       "CHAP_A=9|CHAP_I=1|CHAP_C=0x01",
                                       "CHAP_A=Reject",
                                       "CHAP_A=5|CHAP_I=256|CHAP_C=0x01",
                                       "CHAP_A=5|CHAP_I=1",
                                       "CHAP_A=5|CHAP_I=x|CHAP_C=0x01",
                                       "CHAP_A=5|CHAP_I=1|CHAP_C=hello",
                                       "CHAP_A=5,7|CHAP_I=1|CHAP_C=0x01" };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin(&one_way);
        assert_int_equal(hear(SECURITY, 0, "AuthMethod=CHAP"), TALK_SEND);
        assert_int_equal(hear(SECURITY, 0, bad[i]), TALK_FAILED);
    }
    begin(&one_way); /* a target that wants no proof */
    assert_int_equal(hear(SECURITY, 0, "AuthMethod=None"), TALK_SEND);
    assert_int_equal(flags(), TO_OPERATIONAL);
    assert_int_equal(hear(TO_OPERATIONAL, 0, ""), TALK_SEND);
    assert_int_equal(hear(TO_FULL, 0, ""), TALK_DONE);
    begin(&nobody);
    assert_int_equal(hear(TO_OPERATIONAL, 0, "AuthMethod=CHAP"), TALK_FAILED);
    begin(&nobody);
    assert_int_equal(hear(TO_OPERATIONAL, 0, "AuthMethod=Reject"), TALK_FAILED);
}

/* Keys of one answer over several PDUs, cut anywhere, even within a key. */
static void continued(void **state) {
    (void)state;
    begin(&nobody);
    assert_int_equal(hear(TO_OPERATIONAL, 0, ""), TALK_SEND);
    uint8_t bhs[ISCSI_BHS] = { ISCSI_LOGIN_RESPONSE, OPERATIONAL | ISCSI_CONTINUE };
    iscsiw_put32(bhs + AT_ITT, 1);
    static const char part[] = "InitialR2T=Yes\0MaxBu";
    assert_int_equal(iscsibe_talk_answer(&talk, bhs, (const uint8_t *)part, sizeof part - 1, &err), TALK_SEND);
    assert_int_equal(flags(), OPERATIONAL);
    assert_int_equal(iscsiw_get24(talk.out + AT_LENGTH), 0);
    assert_int_equal(hear(OPERATIONAL, 0, "rstLength=4096"), TALK_SEND);
    assert_int_equal(flags(), TO_FULL);
    assert_int_equal(hear(TO_FULL, 0, ""), TALK_DONE);
    assert_int_equal(talk.terms.value[KEY_MAX_BURST], 4096);
    assert_int_equal(talk.terms.value[KEY_INITIAL_R2T], 1);

    begin(&nobody); /* without end */
    assert_int_equal(hear(TO_OPERATIONAL, 0, ""), TALK_SEND);
    int rounds = 0;
    while (hear(OPERATIONAL | ISCSI_CONTINUE, 0, "X=1") == TALK_SEND) assert_true(++rounds < 100);
    begin(&nobody);
    rounds = 0;
    while (hear(SECURITY, 0, "") == TALK_SEND) assert_true(++rounds < 100);
}

static void refused(void **state) {
    static const struct { unsigned status; const char *words;
    } v[] = {
        { 0x0201, "authentication" },   { 0x0202, "not admitted" },    { 0x0203, "no such target" },
        { 0x0302, "out of resources" }, { 0x02ff, "initiator error" }, { 0x0900, "unknown" },
        { 0x0101, "not told where" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        begin(&one_way);
        assert_int_equal(hear(SECURITY, v[i].status, ""), TALK_FAILED);
        assert_int_equal(talk.status, v[i].status);
        assert_non_null(strstr(err.msg, v[i].words));
    }
    begin(&nobody);
    assert_int_equal(hear(SECURITY, 0x0101, "TargetAddress=10.0.0.2:3261,1"), TALK_REDIRECTED);
    assert_string_equal(talk.address, "10.0.0.2:3261,1");
}

static void malformed(void **state) {
    uint8_t bhs[ISCSI_BHS] = { ISCSI_LOGIN_RESPONSE, TO_OPERATIONAL };
    (void)state;
    static const unsigned bad[] = { TO_FULL, ISCSI_TRANSIT | 3, OPERATIONAL, TO_OPERATIONAL | ISCSI_CONTINUE };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin(&nobody);
        assert_int_equal(hear(bad[i], 0, ""), TALK_FAILED);
    }
    begin(&one_way); /* on to the next stage, where we did not ask for it */
    assert_int_equal(hear(TO_OPERATIONAL, 0, "AuthMethod=None"), TALK_FAILED);
    begin(&nobody);
    assert_int_equal(hear(TO_OPERATIONAL, 0, "no equals sign"), TALK_FAILED);
    begin(&nobody);
    assert_int_equal(hear(TO_OPERATIONAL, 0, "=value"), TALK_FAILED);
    begin(&nobody);
    assert_int_equal(iscsibe_talk_answer(&talk, bhs, NULL, 0, &err), TALK_FAILED); /* another task tag */
    bhs[0] = 0x3f;
    iscsiw_put32(bhs + AT_ITT, 1);
    begin(&nobody);
    assert_int_equal(iscsibe_talk_answer(&talk, bhs, NULL, 0, &err), TALK_FAILED);
    begin(&nobody);
    static uint8_t much[2 * LOGIN_DATA_MAX];
    bhs[0] = ISCSI_LOGIN_RESPONSE;
    assert_int_equal(iscsibe_talk_answer(&talk, bhs, much, sizeof much, &err), TALK_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes),
        cmocka_unit_test(chap_response),
        cmocka_unit_test(chap_values),
        cmocka_unit_test(keys),
        cmocka_unit_test(keys_of_the_target),
        cmocka_unit_test(without_chap),
        cmocka_unit_test(chap_one_way),
        cmocka_unit_test(chap_mutual),
        cmocka_unit_test(chap_algorithms),
        cmocka_unit_test(chap_nonsense),
        cmocka_unit_test(digests_required),
        cmocka_unit_test(discovery_session),
        cmocka_unit_test(other_pdus),
        cmocka_unit_test(continued),
        cmocka_unit_test(refused),
        cmocka_unit_test(malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
