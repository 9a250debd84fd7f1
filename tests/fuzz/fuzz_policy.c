/* Any value of --wlb-layout: refused with an example, or a policy that formats to what parses to itself. */
#include <string.h>

#include "libwlb/wlb.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[256], formatted[128], again[128];
	struct wlb_policy policy, reparsed;
	struct wlb_error error;
	if (bytes >= sizeof(text))
		return 0;
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	if (wlb_policy_parse(text, &policy, &error) < 0) {
		must(strstr(error.message, "tp=2,cp=1,pp=2") != NULL);
		return 0;
	}
	must(wlb_policy_format(&policy, formatted, sizeof(formatted)) < (int)sizeof(formatted));
	must(wlb_policy_parse(formatted, &reparsed, &error) == 0);
	must(wlb_policy_format(&reparsed, again, sizeof(again)) > 0 && strcmp(formatted, again) == 0);
	return 0;
}
