export function live(root) { root.textContent = "live"; return { title: "live", stop() {} }; }
