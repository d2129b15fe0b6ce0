export function alerts(root) { root.textContent = "alerts"; return { title: "alerts", stop() {} }; }
