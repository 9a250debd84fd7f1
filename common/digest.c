#include "common/digest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <nettle/sha2.h>

static void add_text(struct sha256_ctx *context, const char *text)
{
	sha256_update(context, strlen(text), (const uint8_t *)text);
}

static void finish(struct sha256_ctx *context, char digest[WLB_DIGEST_SIZE])
{
	uint8_t sum[SHA256_DIGEST_SIZE];
	sha256_digest(context, sizeof(sum), sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		snprintf(digest + 2 * i, 3, "%02x", sum[i]);
}

static void digest_bytes(const void *bytes, size_t length, char digest[WLB_DIGEST_SIZE])
{
	struct sha256_ctx context;
	sha256_init(&context);
	if (length > 0)
		sha256_update(&context, length, bytes);
	finish(&context, digest);
}

void wlb_digest_request(const char *method, const char *path, const void *body, size_t length,
                        char digest[WLB_DIGEST_SIZE])
{
	struct sha256_ctx context;
	sha256_init(&context);
	add_text(&context, method);
	add_text(&context, "\n");
	add_text(&context, path);
	add_text(&context, "\n");
	if (length > 0)
		sha256_update(&context, length, body);
	finish(&context, digest);
}

void wlb_digest_reply(const char *credential, int status, const char *method, const char *path, const void *body,
                      size_t length, char digest[WLB_DIGEST_SIZE])
{
	char credential_digest[WLB_DIGEST_SIZE], body_digest[WLB_DIGEST_SIZE], number[16];
	struct sha256_ctx context;
	digest_bytes(credential, strlen(credential), credential_digest);
	digest_bytes(body, length, body_digest);
	snprintf(number, sizeof(number), "%d", status);
	const char *const parts[] = {"reply\n", credential_digest, "\n", number, "\n", method, "\n", path,
	                             "\n",      body_digest};
	sha256_init(&context);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		add_text(&context, parts[i]);
	finish(&context, digest);
}
