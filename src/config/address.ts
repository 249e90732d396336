/** What is an IP address. node:net knows it too, but takes 2 ms to load, and nothing else of it is used at the start. */
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
/** Of a link-local address: fe80::1%eth0. */
const ZONE = /%[\w.:-]+$/;

export function isIPv4(text: string): boolean {
  return IPV4.test(text);
}

export function isIP(text: string): boolean {
  return (
    isIPv4(text) ||
    (text.includes(':') &&
      /^[\da-f:.]+$/i.test(text.replace(ZONE, '')) &&
      URL.canParse(`http://[${text.replace(ZONE, '')}]`))
  );
}
