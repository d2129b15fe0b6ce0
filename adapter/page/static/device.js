export function device(root) { root.textContent = "device"; return { title: "device", stop() {} }; }
