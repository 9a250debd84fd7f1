#include "coordinator/wlb/report/page.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/base64.h>
#include <nettle/sha2.h>

#include "coordinator/wlb/report/embedded.h"

enum { HASH_TEXT_BYTES = BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE) + 1 };

static void hash_of(const char *bytes, size_t count, char text[HASH_TEXT_BYTES])
{
	struct sha256_ctx context;
	uint8_t digest[SHA256_DIGEST_SIZE];
	sha256_init(&context);
	sha256_update(&context, count, (const uint8_t *)bytes);
	sha256_digest(&context, sizeof(digest), digest);
	base64_encode_raw(text, sizeof(digest), digest);
	text[HASH_TEXT_BYTES - 1] = '\0';
}

/* An icon of its own keeps a browser from asking a server for one. */
void wlb_report_policy(bool follows, char policy[WLB_REPORT_POLICY_BYTES])
{
	char style[HASH_TEXT_BYTES], script[HASH_TEXT_BYTES];
	hash_of(wlb_report_style, wlb_report_style_bytes, style);
	hash_of(wlb_report_script, wlb_report_script_bytes, script);
	snprintf(policy, WLB_REPORT_POLICY_BYTES,
	         "default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; img-src data:; base-uri 'none'; "
	         "form-action 'none'%s",
	         style, script, follows ? "; connect-src 'self'" : "");
}

/* Replaces each character with a meaning in HTML by its escape in JSON, where it can only be in a string. */
static char *escape(const char *json)
{
	size_t bytes = strlen(json) + 1;
	for (const char *c = json; *c != '\0'; c++)
		bytes += strchr("<>&", *c) != NULL ? 5 : 0;
	char *escaped = malloc(bytes), *to = escaped;
	for (const char *c = json; escaped != NULL; c++) {
		if (*c != '\0' && strchr("<>&", *c) != NULL)
			to += sprintf(to, "\\u%04x", (unsigned)*c);
		else if ((*to++ = *c) == '\0')
			break;
	}
	return escaped;
}

char *wlb_report_data_json(const json_t *data)
{
	char *json = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(7));
	char *escaped = json != NULL ? escape(json) : NULL;
	free(json);
	return escaped;
}

int wlb_report_page(const json_t *data, const char *follow, FILE *out, struct wlb_error *error)
{
	char policy[WLB_REPORT_POLICY_BYTES];
	char *json = wlb_report_data_json(data);
	if (json == NULL)
		return wlb_fail(error, "out of memory for the page");
	wlb_report_policy(follow != NULL, policy);
	fprintf(out,
	        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	        "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n"
	        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	        "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" "
	        "content=\"no-referrer\">\n"
	        "<link rel=\"icon\" href=\"data:,\">\n<title>WLB report</title>\n<style>",
	        policy);
	fwrite(wlb_report_style, 1, wlb_report_style_bytes, out);
	fputs("</style>\n</head>\n<body>\n<noscript>This page draws its data by a script, which this browser does not "
	      "run."
	      "</noscript>\n<script type=\"application/json\" id=\"wlb-data\"",
	      out);
	if (follow != NULL)
		fprintf(out, " data-follow=\"%s\"", follow);
	fprintf(out, ">%s</script>\n<script>", json);
	fwrite(wlb_report_script, 1, wlb_report_script_bytes, out);
	fputs("</script>\n</body>\n</html>\n", out);
	free(json);
	return 0;
}
